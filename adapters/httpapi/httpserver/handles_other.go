//go:build !unix

package httpserver

func fileHandles() int { return 0 }
