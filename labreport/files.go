package labreport

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// sniff returns the media type of a file by its first bytes: application/pdf, image/jpeg or image/png; empty for
// other files. The header of a PDF may be anywhere in the first 1,024 bytes.
func sniff(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xd8, 0xff}):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-")):
		return "application/pdf"
	}
	return ""
}

// Extractors is a [TextExtractor] that uses, for each file, the extractor under the file's media type. Do not change
// the map during use.
type Extractors map[string]TextExtractor

// Check implements [TextExtractor]. A type that is not in the map is
// [healthlab.Unimplemented].
func (x Extractors) Check(ctx context.Context, file File) (int, error) {
	e := x[file.Type]
	if e == nil {
		return 0, unknownType(file.Type, x)
	}
	return e.Check(ctx, file)
}

// Extract implements [TextExtractor]. A type that is not in the map is [healthlab.Unimplemented].
func (x Extractors) Extract(ctx context.Context, file File, page func(Page) error) error {
	e := x[file.Type]
	if e == nil {
		return unknownType(file.Type, x)
	}
	return e.Extract(ctx, file, page)
}

func unknownType[T any](is string, known map[string]T) error {
	return fmt.Errorf("%w: the file type is %q; it must be one of: %s", healthlab.Unimplemented, is, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// Renderers is a [Renderer] that uses, for each file, the renderer under the file's media type. Do not change the map
// during use.
type Renderers map[string]Renderer

// RenderPage implements [Renderer]. A type that is not in the map is [healthlab.Unimplemented].
func (x Renderers) RenderPage(ctx context.Context, file File, page, pixels int) (image.Image, error) {
	r := x[file.Type]
	if r == nil {
		return nil, unknownType(file.Type, x)
	}
	return r.RenderPage(ctx, file, page, pixels)
}
