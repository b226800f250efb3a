// Package bench compares the aggregate engine with DuckDB in one process and one run. Its
// tests check that both return the same answers and read the same Parquet files.
//
// It is a Go module of its own, because DuckDB needs cgo and users of the library must not
// inherit that dependency. Run it with make bench, or here:
//
//	go test ./...                        # compare the answers
//	go test -run '^$' -bench . ./...     # compare the times
package bench
