package fileimport

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// origin is the source of a record in an export.
type origin struct {
	kind healthdata.SourceType
	// app is the bundle id of the source, or else the text of id. It is nil if the file does not say who recorded.
	app *string
	// id is derived from the name of the source, and is stored in its place, because the name may contain that of a
	// person.
	id uuid.UUID
}

// origins caches origins by the name and the device of their source.
type origins map[string]*origin

// mostOrigins is the largest number of cached origins, because the file chooses their number.
const mostOrigins = 2000

// mostAppID is the largest accepted length of a bundle id.
const mostAppID = 200

// originSpace is the UUID namespace of the ids that are derived for sources and records without an id.
var originSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:fileimport"))

var bundleID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z0-9_-]+){2,}$`)

// get returns the origin of a source name and device. scratch is a buffer for the cache key. get returns the buffer,
// which may have grown, for the next call.
func (o origins) get(name, device, scratch []byte) (*origin, []byte) {
	// The text of a device begins with a memory address, which differs from record to record.
	if _, after, found := bytes.Cut(device, []byte(", ")); found {
		device = after
	}
	key := append(append(append(scratch[:0], name...), 0), device...)
	if v, ok := o[string(key)]; ok {
		return v, key
	}
	v := &origin{kind: sourceType(string(name), string(device)), id: uuid.NewSHA1(originSpace, name)}
	switch {
	case len(name) <= mostAppID && bundleID.Match(name):
		v.app = new(string(name))
	case len(name) > 0:
		v.app = new(v.id.String())
	}
	if len(o) >= mostOrigins {
		clear(o)
	}
	o[string(key)] = v
	return v, key
}

// sourceType returns the type of a source by the device of the record, or else by a word in the name of the source.
// Devices and apps of other vendors are unknown.
func sourceType(name, device string) healthdata.SourceType {
	if device != "" {
		if !strings.HasPrefix(deviceField(device, "manufacturer:"), "Apple") {
			return healthdata.SourceUnknown
		}
		return typeOfWords(deviceField(device, "model:"))
	}
	if name == "Health" { // the store itself, for values that people type in
		return healthdata.SourceApp
	}
	return typeOfWords(name)
}

// typeOfWords returns watch or phone if a word of a device name says so. It also splits at no-break spaces, which
// phones write into names.
func typeOfWords(name string) healthdata.SourceType {
	for _, word := range strings.Fields(name) {
		switch {
		case word == "Watch":
			return healthdata.SourceWatch
		case strings.HasSuffix(word, "Phone"), strings.HasSuffix(word, "Pad"), strings.HasSuffix(word, "Pod"):
			return healthdata.SourcePhone
		}
	}
	return healthdata.SourceUnknown
}

func deviceField(device, label string) string {
	_, after, _ := strings.Cut(device, label)
	value, _, _ := strings.Cut(after, ", ")
	return strings.Trim(value, " >")
}
