"""What all pages share: guards, live pieces, error pages."""
