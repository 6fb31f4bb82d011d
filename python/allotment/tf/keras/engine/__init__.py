"""What layers, models and training are made of; the names users know are one folder up."""
