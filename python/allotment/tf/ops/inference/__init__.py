"""Shape inference for graphs: known shapes and values. It sees tensors of graphs through protocols only."""
