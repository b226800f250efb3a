package healthlab

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is the text in place of a private value.
const redacted = "[redacted]"

// Private keeps the values of a struct that embeds it out of logs, errors and prints: fmt with every verb and
// log/slog write [redacted] instead. Fields can still be read, and encodings such as JSON are not affected.
//
// Embed it in each struct with values of a person or a secret. A struct that embeds two such structs must embed
// Private itself, because otherwise Go finds two methods at the same depth and uses neither. A type whose ids
// help in logs declares LogValue in addition.
type Private struct{}

// Format writes [redacted] for every verb.
func (Private) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String returns [redacted].
func (Private) String() string { return redacted }

// GoString returns [redacted].
func (Private) GoString() string { return redacted }

// LogValue returns [redacted].
func (Private) LogValue() slog.Value { return slog.StringValue(redacted) }
