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

// quoted matches text between the first and the last quote, and text after an equals sign.
var quoted = regexp.MustCompile("(?s)[\"'`].*[\"'`]|[\"'`].*|=\\S+")

// genitive matches the apostrophe of a genitive, which is not a quote.
var genitive = regexp.MustCompile(`(\pL)'s\b`)

// Cause returns the text of an error chain for logs: at most 300 bytes, without quoted text. Drivers and the standard
// library quote values that they could not parse.
func Cause(err error) string {
	const most = 300
	const apostrophe = "\x00" // no text of an error has it
	s := genitive.ReplaceAllString(err.Error(), "${1}"+apostrophe+"s")
	s = strings.ReplaceAll(quoted.ReplaceAllString(s, "…"), apostrophe, "'")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// warnEvery is how long failures of a kind are logged at INFO after one at WARN.
const warnEvery = time.Hour

// FailureLog logs failures of background work: the first of a kind at WARN, and those within the next hour at INFO, so
// that an outage does not flood the log. The zero value is ready to use. Safe for concurrent use.
type FailureLog struct {
	mu     sync.Mutex
	warned map[string]time.Time
}

// Log logs a failure of a kind, such as the name of the work and of the provider, at an instant.
// The record has the attributes, the kind of the error and its cause.
func (f *FailureLog) Log(ctx context.Context, log *slog.Logger, at time.Time, kind, msg string, err error, attrs ...any) {
	level := slog.LevelInfo
	if f.first(kind+" "+healthlab.KindOf(err).Error(), at) {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, msg, append(attrs, "kind", healthlab.KindOf(err).Error(), "cause", Cause(err))...)
}

// first reports whether no failure of a kind was logged at WARN in the last hour.
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

// Frames returns the functions and lines that led to a panic, innermost first. It must be called by a deferred function
// that recovers.
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
