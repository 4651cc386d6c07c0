"""Sessions that outlive a lost connection for a while."""
