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

// quoted finds what stands between the first quote and the last, for a value may hold
// quotes itself, or behind an equals sign.
var quoted = regexp.MustCompile("(?s)[\"'`].*[\"'`]|[\"'`].*|=\\S+")

// genitive finds the apostrophe of a genitive, which quotes nothing.
var genitive = regexp.MustCompile(`(\pL)'s\b`)

// Cause is the text of an error for logs: the whole chain, at most 300 bytes, without what it
// quotes. Errors of this module and of connectors hold no values of a person, but those of drivers
// and of the standard library quote what they could not read.
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

// warnEvery is how long failures of one kind are logged below WARN after one at WARN.
const warnEvery = time.Hour

// FailureLog logs failures of background work: the first of a kind at WARN, and those that follow
// within an hour at INFO, so that an outage fills no log that a person reads. The zero value is
// ready. Safe for concurrent use.
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

// Frames names the functions and lines that led to a panic, the nearest first: for a function that
// recovers.
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
