package fileimport

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Times outside of these years are refused.
const firstYear, lastYear = 1990, 2100

// parseStamp reads a time of an export, such as 2016-04-01 07:23:29 -0400, as Unix seconds and its offset in seconds
// east of UTC. It returns false if there is no offset.
func parseStamp(b []byte) (unix int64, offset int, ok bool) {
	at, zoned, ok := readTime(string(b))
	if !ok || !zoned {
		return 0, 0, false
	}
	_, offset = at.Zone()
	return at.Unix(), offset, true
}

// readTime reads a date and time as [healthlab.ParseTimeZone] does, and in other forms that programs write: with a
// 12-hour clock in any language, with the name of a zone, without leading zeros, with slashes after the year, as 14
// digits, and as Unix seconds or milliseconds. zoned is false for a text without an offset, which is read as UTC.
// The location of at is time.UTC if the text states only the instant (Z, UTC, Unix time), and another location if it
// has an offset (even +00:00).
func readTime(text string) (at time.Time, zoned, ok bool) {
	text = strings.TrimSpace(text)
	t, offset, err := healthlab.ParseTimeZone(text)
	if err != nil {
		if unix, ok := unixTime(text); ok {
			return unix, true, true
		}
		var zone string
		if text, zone, ok = isoForm(text); !ok {
			return at, false, false
		}
		if t, offset, err = healthlab.ParseTimeZone(text); err != nil {
			return at, false, false
		}
		if offset == nil && zone != "" {
			loc, err := time.LoadLocation(zone)
			if err != nil || zone == "Local" {
				return at, false, false
			}
			all := clockTimes(t.Time, loc)
			if len(all) != 1 {
				return at, false, false
			}
			return all[0], true, true
		}
	}
	switch {
	case offset == nil:
		return t.Time, false, true
	case hasUTCSuffix(text):
		return t.Time, true, true
	}
	return t.In(time.FixedZone("", *offset)), true, true
}

func hasUTCSuffix(text string) bool {
	// Z, UTC and GMT do not say in which zone the person was.
	text, _, _ = strings.Cut(text, "[")
	return strings.TrimRight(text, "zZ") != text || strings.HasSuffix(text, "UTC") || strings.HasSuffix(text, "GMT")
}

var unixForm = regexp.MustCompile(`^(\d{10})(?:(\d{3})|[.,](\d{1,6})\d*)?$`)

// unixTime reads Unix seconds, possibly with a fraction, or milliseconds, of 2001 or later.
func unixTime(text string) (time.Time, bool) {
	parts := unixForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, false
	}
	seconds, _ := strconv.ParseInt(parts[1], 10, 64)
	micros, _ := strconv.ParseInt((parts[2] + parts[3] + "000000")[:6], 10, 64)
	return time.Unix(seconds, 1000*micros).UTC(), true
}

var (
	digitRun  = regexp.MustCompile(`^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})\s*(\D.*)?$`)
	yearFirst = regexp.MustCompile(`^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[T\s,]\s*(.*)$`)
	clockForm = regexp.MustCompile(`^([^\d]*)(\d{1,2}):(\d{1,2})(?::(\d{1,2})([.,]\d+)?)?\s*(.*)$`)
	offsetEnd = regexp.MustCompile(`^([^+\d-]*)([+-].*)?$`)
	zoneName  = regexp.MustCompile(`^(.*?)\s*\[?([A-Za-z]+/[A-Za-z0-9_+/-]+|UTC)\]?$`)
)

// isoForm converts a date and time that begin with the year to ISO 8601, and returns the zone that the text names;
// empty if it names none.
func isoForm(text string) (iso, zone string, ok bool) {
	text = plainText(text)
	if parts := digitRun.FindStringSubmatch(text); parts != nil {
		text = fmt.Sprintf("%s-%s-%s %s:%s:%s %s", parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7])
	}
	if parts := zoneName.FindStringSubmatch(text); parts != nil && (parts[2] != "UTC" || strings.HasSuffix(text, "]")) {
		text, zone = parts[1], parts[2]
	}
	date := yearFirst.FindStringSubmatch(text)
	if date == nil {
		return "", "", false
	}
	clock := clockForm.FindStringSubmatch(date[4])
	if clock == nil {
		return "", "", false
	}
	end := offsetEnd.FindStringSubmatch(clock[6])
	if end == nil {
		return "", "", false
	}
	hour, _ := strconv.Atoi(clock[2])
	after, offset := strings.TrimSpace(end[1]), end[2]
	before := strings.TrimSpace(clock[1])
	if before != "" || after != "" {
		half, known := halfOfDay[halfWord(before+after)]
		switch {
		case known && (hour < 1 || hour > 12):
			return "", "", false
		case known:
			hour = hour%12 + half
		case before == "" && (strings.EqualFold(after, "Z") || after == "UTC" || after == "GMT"):
			offset = after + offset
		default:
			return "", "", false
		}
	}
	seconds := "00"
	if clock[4] != "" {
		seconds = clock[4]
	}
	return fmt.Sprintf("%s-%02s-%02sT%02d:%02s:%02s%s%s", date[1], date[2], date[3], hour, clock[3], seconds, strings.Replace(clock[5], ",", ".", 1), offset), zone, true
}

// plainText replaces spaces, minus signs and digits of all scripts by those of ASCII, and writes Chinese and
// Japanese dates with hyphens.
func plainText(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u2212', r == '年', r == '月':
			return '-'
		case r == '日':
			return ' '
		case r >= utf8.RuneSelf && unicode.IsDigit(r):
			return '0' + digitOf(r)
		}
		return r
	}, text))
}

// digitOf returns the ASCII digit for a digit of another script. The digits of each script have consecutive code
// points.
func digitOf(r rune) rune {
	zero := r
	for r-zero < 9 && unicode.IsDigit(zero-1) {
		zero--
	}
	return r - zero
}

// halfWord returns a word for a half of the day in the spelling of the keys of [halfOfDay].
func halfWord(word string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '"' || r == '\u05f4' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, healthlab.FoldText(word))
}

// halfOfDay maps the words for the halves of the day to the hours that they add. The words are those of Unicode's CLDR.
var halfOfDay = halves("am a vorm vm fm ap πμ öö de dop дп 오전 上午 午前 sa ก่อนเที่ยง ص ق.ظ לפנה״צ पूर्वाह्न pg пр.об priešpiet priekšp damanhã eparadites",
	"pm p nachm nm em ip μμ ös du odp пп 오후 下午 午後 ch หลังเที่ยง م ب.ظ אחה״צ अपराह्न ptg сл.об popiet pēcp datarde epasdites")

func halves(morning, afternoon string) map[string]int {
	out := map[string]int{}
	for _, word := range strings.Fields(morning) {
		out[halfWord(word)] = 0
	}
	for _, word := range strings.Fields(afternoon) {
		out[halfWord(word)] = 12
	}
	return out
}

// zones caches time zones by their IANA names.
type zones map[string]*time.Location

// mostZones is the largest number of cached time zone names, because the file chooses them.
const mostZones = 1000

// get returns the time zone with an IANA name, or nil.
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

var (
	dayMonth = regexp.MustCompile(`^(\d{1,2})\.?(?: de| di)? ([^\d\s.,]+)\.?,?(?: de)? (\d{4}),?(?: um| at| a| kl\.?)? (\d.*)$`)
	monthDay = regexp.MustCompile(`^([^\d\s.,]+)\.? (\d{1,2}),? (\d{4}),?(?: at)? (\d.*)$`)
	dotted   = regexp.MustCompile(`^(\d{1,2})\.(\d{1,2})\.(\d{4}),? (\d.*)$`)
)

// writtenTime reads a date and time as people write it, as UTC. The date has the name of the month in one of the
// languages of [monthNames] with the day before or after it, or dots with the day first, or begins with the year.
// The clock has 12 or 24 hours. It returns false if the text has another form.
func writtenTime(text string) (time.Time, bool) {
	text = strings.Join(strings.Fields(healthlab.FoldText(text)), " ") // replaces spaces of any kind
	if parts := dayMonth.FindStringSubmatch(text); parts != nil && monthNames[parts[2]] > 0 {
		text = fmt.Sprintf("%s-%d-%s %s", parts[3], monthNames[parts[2]], parts[1], parts[4])
	} else if parts := monthDay.FindStringSubmatch(text); parts != nil && monthNames[parts[1]] > 0 {
		text = fmt.Sprintf("%s-%d-%s %s", parts[3], monthNames[parts[1]], parts[2], parts[4])
	} else if parts := dotted.FindStringSubmatch(text); parts != nil {
		text = fmt.Sprintf("%s-%s-%s %s", parts[3], parts[2], parts[1], parts[4])
	}
	t, _, ok := readTime(strings.ToUpper(text))
	return t.UTC(), ok && t.Year() >= firstYear && t.Year() <= lastYear
}

// monthNames maps the names of months and their short forms, after [healthlab.FoldText], to their numbers: English,
// German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Norwegian and Polish.
var monthNames = months(
	"jan january januar jänner janvier janv enero ene gennaio gen janeiro januari styczeń stycznia sty",
	"feb february februar februari février févr febrero febbraio fevereiro fev luty lutego lut",
	"mar march märz mrz mars marzo março maart mrt marts marca marzec",
	"apr april avril avr abril abr aprile kwiecień kwietnia kwi",
	"may mai mayo maggio mag maio mei maj maja",
	"jun june juni juin junio giugno giu junho czerwiec czerwca cze",
	"jul july juli juillet juil julio luglio lug julho lipiec lipca lip",
	"aug august août agosto ago augustus augusti sierpień sierpnia sie",
	"sep sept september septembre septiembre settembre set setembro wrzesień września wrz",
	"oct october oktober okt octobre octubre ottobre ott outubro out październik października paź",
	"nov november novembre noviembre novembro listopad listopada lis",
	"dec december dezember dez décembre déc diciembre dic dicembre dezembro desember des grudzień grudnia gru",
)

func months(names ...string) map[string]int {
	out := map[string]int{}
	for i, line := range names {
		for _, name := range strings.Fields(line) {
			out[healthlab.FoldText(name)] = i + 1
		}
	}
	return out
}

// clockTimes returns the instants at which a clock in a zone shows a time: two in the repeated hour of autumn, none in
// the skipped hour of spring.
func clockTimes(clock time.Time, zone *time.Location) []time.Time {
	var out []time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := clock.Add(near).In(zone).Zone()
		at := clock.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, really := at.Zone(); really == offset && !slices.ContainsFunc(out, at.Equal) {
			out = append(out, at)
		}
	}
	return out
}
