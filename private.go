package healthlab

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what a private value prints.
const redacted = "[redacted]"

// Private keeps the values of a struct that embeds it out of logs, errors and prints: fmt with
// every verb and log/slog write [redacted] in its place. Fields can still be read, and
// encodings such as JSON are not touched.
//
// Embed it in each struct that holds values of a person or a secret. A struct that embeds two
// private ones embeds Private itself, or Go sees two ways to print and takes none. A type
// whose ids help in logs declares LogValue beside it.
type Private struct{}

// Format writes [redacted], whatever the verb.
func (Private) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String returns [redacted].
func (Private) String() string { return redacted }

// GoString returns [redacted].
func (Private) GoString() string { return redacted }

// LogValue returns [redacted].
func (Private) LogValue() slog.Value { return slog.StringValue(redacted) }
