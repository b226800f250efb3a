// Package bench compares the aggregate engine with DuckDB, in one process and one run,
// and checks that both give the same answers and read the same files.
//
// It is a Go module of its own, which nothing imports: DuckDB needs cgo, and no host of
// the library inherits either. Run it with make bench, or here:
//
//	go test ./...                        # do both agree?
//	go test -run '^$' -bench . ./...     # and how fast are they?
package bench
