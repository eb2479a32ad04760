"""The languages of pages and histories: the files in `dealer/web/texts`, one for each language."""
