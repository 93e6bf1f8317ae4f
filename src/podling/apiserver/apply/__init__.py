"""Who manages which field: server-side apply, and the record of it that every write keeps."""
