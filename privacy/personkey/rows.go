package personkey

// RowFile returns the row name of a stored file, or of the key that encrypts this file, for [Keys.Seal] and [Keys.Open].
// A row name says where an encrypted value is stored, so that it cannot be decrypted in another place. A store made with
// [Encrypt] passes the key of the row instead.
func RowFile(key string) string { return "file/" + key }
