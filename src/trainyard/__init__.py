"""What runs on the controller only and is never sent to a host."""
