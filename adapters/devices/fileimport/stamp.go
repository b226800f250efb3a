package fileimport

import (
	"regexp"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// parseStamp reads a date-time of an export, 2016-04-01 07:23:29 -0400, as Unix seconds and the
// offset in seconds east of UTC. False without an offset.
func parseStamp(b []byte) (unix int64, offset int, ok bool) {
	at, written, err := healthlab.ParseTimeZone(strings.TrimSpace(string(b)))
	if err != nil || written == nil {
		return 0, 0, false
	}
	return at.Unix(), *written, true
}

// zones loads zones by their IANA names, each once.
type zones map[string]*time.Location

// mostZones is the largest number of cached time zone names, because the file chooses them.
const mostZones = 1000

// get returns the time zone with a name, or nil.
func (z zones) get(name []byte) *time.Location {
	if loc, ok := z[string(name)]; ok {
		return loc
	}
	var loc *time.Location
	if n := string(name); n != "" && n != "Local" {
		loc, _ = time.LoadLocation(n)
	}
	if len(z) < mostZones {
		z[string(name)] = loc
	}
	return loc
}

func offsetIn(loc *time.Location, unix int64) int {
	_, offset := time.Unix(unix, 0).In(loc).Zone()
	return offset
}

// writtenForms are how a date and time is written in English, with months by their first three
// letters.
var writtenForms = []string{
	"Jan 2, 2006, 3:04:05 PM", "Jan 2, 2006, 15:04:05", "2 Jan 2006, 15:04:05", "2 Jan 2006, 3:04:05 PM",
}

var (
	monthWord = regexp.MustCompile(`(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`)
	halfOfDay = regexp.MustCompile(`(?i)\b([ap])\.?m\b\.?`)
)

// writtenTime reads an English date and time as UTC: month or day first, month names of any length, 12- or 24-hour
// clock. It returns false if the text has another form.
func writtenTime(text string) (time.Time, bool) {
	text = strings.Join(strings.Fields(text), " ") // spaces of any kind
	text = monthWord.ReplaceAllString(text, "$1")
	text = halfOfDay.ReplaceAllStringFunc(text, func(s string) string { return strings.ToUpper(s[:1]) + "M" })
	for _, form := range writtenForms {
		if t, err := time.Parse(form, text); err == nil && t.Year() >= firstYear && t.Year() <= lastYear {
			return t, true
		}
	}
	return time.Time{}, false
}
