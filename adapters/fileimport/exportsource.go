package fileimport

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// origin is who recorded something, as an export tells it.
type origin struct {
	kind healthdata.SourceType
	// app is the bundle id, where the export names the source by it.
	app *string
	// id stands for the source's name, which may hold the name of a person.
	id uuid.UUID
}

// origins remembers what it made of a name and a device.
type origins map[string]*origin

// mostOrigins bounds what is remembered: names come from the file.
const mostOrigins = 2000

// originSpace is the name space of the ids of sources and of records without an id.
var originSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:fileimport"))

var bundleID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z0-9_-]+){2,}$`)

// get returns who a source is. scratch is a buffer to build the key in; it is returned
// for the next call.
func (o origins) get(name, device, scratch []byte) (*origin, []byte) {
	// A device begins with an address in memory, which differs from record to record.
	if _, after, found := bytes.Cut(device, []byte(", ")); found {
		device = after
	}
	key := append(append(append(scratch[:0], name...), 0), device...)
	if v, ok := o[string(key)]; ok {
		return v, key
	}
	v := &origin{kind: sourceType(string(name), string(device)), id: uuid.NewSHA1(originSpace, name)}
	if bundleID.Match(name) {
		app := string(name)
		v.app = &app
	}
	if len(o) >= mostOrigins {
		clear(o)
	}
	o[string(key)] = v
	return v, key
}

// sourceType tells the store's own devices by what the record says of the device,
// else by the name of the source. What other makers' apps write stays unknown.
func sourceType(name, device string) healthdata.SourceType {
	if device != "" {
		model := deviceField(device, "model:") + " " + deviceField(device, "hardware:")
		switch {
		case !strings.HasPrefix(deviceField(device, "manufacturer:"), "Apple"):
			return healthdata.SourceUnknown
		case strings.Contains(model, "Watch"):
			return healthdata.SourceWatch
		case strings.Contains(model, "iPhone"), strings.Contains(model, "iPod"), strings.Contains(model, "iPad"):
			return healthdata.SourcePhone
		}
		return healthdata.SourceUnknown
	}
	switch {
	case strings.Contains(name, "Apple Watch"):
		return healthdata.SourceWatch
	case strings.Contains(name, "iPhone"):
		return healthdata.SourcePhone
	case name == "Health":
		return healthdata.SourceApp
	}
	return healthdata.SourceUnknown
}

func deviceField(device, label string) string {
	_, after, _ := strings.Cut(device, label)
	value, _, _ := strings.Cut(after, ", ")
	return strings.Trim(value, " >")
}
