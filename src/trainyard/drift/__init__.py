"""What differs in a cluster from what the site says of it, beside what the roles apply: rules without a connection."""
