// Package labreportmock has mocks of the interfaces that hosts implement for package labreport, for tests of a
// host: they expect calls and return what the test sets (go.uber.org/mock). A store whose state matters is
// adapters/memory.
package labreportmock

//go:generate go run go.uber.org/mock/mockgen@v0.6.0 -typed -write_package_comment=false -package labreportmock -destination labreportmock_gen.go github.com/healthlab-dev/healthlab/labreport TextExtractor,RowExtractor,BlobStore
