"""Four workflows to try and to copy from: order, refund, database-backup and rolling-release."""
