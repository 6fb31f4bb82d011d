"""What programs set beside memory: flags, visible devices, sizes of thread pools."""
