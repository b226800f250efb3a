package fileimport

import (
	"regexp"
	"strings"
	"time"
)

// parseStamp reads the date-times of an export, 2016-04-01 07:23:29 -0400, as Unix
// seconds and the offset in seconds east of UTC.
func parseStamp(b []byte) (unix int64, offset int, ok bool) {
	if len(b) != 25 || b[4] != '-' || b[7] != '-' || b[10] != ' ' || b[13] != ':' || b[16] != ':' || b[19] != ' ' {
		return 0, 0, false
	}
	year, ok1 := number(b[0:4])
	month, ok2 := number(b[5:7])
	day, ok3 := number(b[8:10])
	hour, ok4 := number(b[11:13])
	minute, ok5 := number(b[14:16])
	second, ok6 := number(b[17:19])
	oh, ok7 := number(b[21:23])
	om, ok8 := number(b[23:25])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && ok8) ||
		year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 || om > 59 {
		return 0, 0, false
	}
	offset = oh*3600 + om*60
	if offset > 18*3600 {
		return 0, 0, false
	}
	switch b[20] {
	case '-':
		offset = -offset
	case '+':
	default:
		return 0, 0, false
	}
	unix = daysSince1970(year, month, day)*86400 + int64(hour*3600+minute*60+second-offset)
	const first, last = -62135596800, 253402300799 // years 1 to 9999
	return unix, offset, unix >= first && unix <= last
}

func number(b []byte) (n int, ok bool) {
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int(d)
	}
	return n, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts the days of the proleptic Gregorian calendar. Years are counted
// from March, so that the leap day is the last of its year, in eras of 400 years,
// which all have 146,097 days.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	ofEra := year - era*400
	fromMarch := (month + 9) % 12
	ofYear := (153*fromMarch+2)/5 + day - 1
	return int64(era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468)
}

// zones loads zones by their IANA names, each once.
type zones map[string]*time.Location

// mostZones bounds the names that are remembered: they come from the file.
const mostZones = 1000

// get returns a zone, or nil if there is none of that name.
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

// offsetIn returns a zone's offset at an instant, in seconds east of UTC.
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

// writtenTime reads a date and time in English as if in UTC: the month first or the day, names of
// months in any length, the clock with 24 or with 12 hours. False if it is none.
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
