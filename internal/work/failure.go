package work

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// quoted matches what may be a value in an error text: everything from the first quote to the last, and text after
// an equals sign.
var quoted = regexp.MustCompile("(?s)[\"'`].*[\"'`]|[\"'`].*|=\\S+")

// genitive matches the apostrophe in words such as "team's", which is not a quote.
var genitive = regexp.MustCompile(`(\pL)'s\b`)

// Cause returns the text of an error for logs: at most 300 bytes, and without quoted text. Drivers and the standard
// library quote values in errors, and these may be personal.
func Cause(err error) string {
	const most = 300
	const apostrophe = "\x00" // stands for the apostrophe: no error text contains this byte
	s := genitive.ReplaceAllString(err.Error(), "${1}"+apostrophe+"s")
	s = strings.ReplaceAll(quoted.ReplaceAllString(s, "…"), apostrophe, "'")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// warnEvery is the time after a failure was logged at WARN in which further failures of its kind are logged at
// INFO.
const warnEvery = time.Hour

// FailureLog logs failures of background work, so that an outage does not flood the log: the first failure of a
// kind at WARN, and those of the next hour at INFO. The zero value is ready to use. It is safe for concurrent use.
type FailureLog struct {
	mu     sync.Mutex
	warned map[string]time.Time
}

// Log logs a failure at an instant. Failures with equal kind (such as the name of the work and of the provider) and
// equal kind of error count together. The log record has attrs, the kind of the error and its cause.
func (f *FailureLog) Log(ctx context.Context, log *slog.Logger, at time.Time, kind, msg string, err error, attrs ...any) {
	level := slog.LevelInfo
	if f.first(kind+" "+healthlab.KindOf(err).Error(), at) {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, msg, append(attrs, "kind", healthlab.KindOf(err).Error(), "cause", Cause(err))...)
}

// first reports whether a failure must be logged at WARN, because none of its kind was in the last hour. It then
// remembers the instant.
func (f *FailureLog) first(kind string, at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := f.warned[kind]; ok && at.Sub(last) < warnEvery {
		return false
	}
	if f.warned == nil {
		f.warned = map[string]time.Time{}
	}
	f.warned[kind] = at
	return true
}

// Frames returns the functions and lines that led to a panic, the innermost first. Call it in the deferred function
// that recovers the panic.
func Frames() []string {
	var pcs [24]uintptr
	n := runtime.Callers(3, pcs[:])
	var out []string
	for it := runtime.CallersFrames(pcs[:n]); ; {
		f, more := it.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			out = append(out, fmt.Sprintf("%s (%s:%d)", f.Function, file, f.Line))
		}
		if !more || len(out) == 10 {
			return out
		}
	}
}
