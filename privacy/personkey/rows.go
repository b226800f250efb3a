package personkey

// RowFile returns the row name of a stored file, or of the key that encrypts this file, for [Keys.Seal] and
// [Keys.Open]. A row name identifies where an encrypted value is stored, so that a value copied to another row or file
// cannot be decrypted. A store made with [Encrypt] passes the key of the row instead.
func RowFile(key string) string { return "file/" + key }
