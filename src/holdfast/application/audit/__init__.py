"""The trail used: heads, proofs, exports, reports and evidence."""
