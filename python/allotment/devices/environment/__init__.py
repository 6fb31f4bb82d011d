"""The environment variables: what each accepts, and the only reader of them."""
