// Package linkpages tests the link pages of httpapi, over HTTP and in a browser.
package linkpages
