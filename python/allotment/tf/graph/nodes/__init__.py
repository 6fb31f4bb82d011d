"""The data of graphs: nodes, their tensors and names, and where nodes are requested to run."""
