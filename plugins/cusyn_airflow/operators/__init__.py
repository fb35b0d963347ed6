"""One operator a stage; each thin, keyword-only, and safe to run again."""
