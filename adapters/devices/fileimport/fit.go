package fileimport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/muktihari/fit/decoder"
	"github.com/muktihari/fit/kit/hash/crc16"
	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"
)

// importFIT reads one or several chained FIT files, and sends their data to the sink when all were read. Of a damaged
// file it stores the readable part and adds notes. It fails if nothing is readable.
func importFIT(out *output, data []byte) error {
	parts, notes, err := splitFIT(data)
	if err != nil {
		return err
	}
	files := make([]*fitFile, 0, len(parts))
	budget := fitBudget{out.opts.MaxPoints, out.opts}
	var first error
	for _, p := range parts {
		f := &fitFile{zone: out.opts.Zone}
		if p.damage != "" {
			notes = append(notes, p.damage)
		}
		err := f.decode(out.ctx, p.content(data), int64(p.from), &budget)
		var broken *brokenError
		if errors.As(err, &broken) {
			if first == nil {
				first = broken.FileError
			}
			note := "the last message is left out: " + broken.Msg
			if n := int64(p.to) - broken.Offset; n > 0 {
				note = fmt.Sprintf("from byte %d on, %d bytes are left out: %s", broken.Offset, n, broken.Msg)
			}
			notes = append(notes, note)
			err = nil
		}
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	joinHeartRateFiles(files)
	for i, f := range files {
		if err := f.resolveTimes(out, int64(parts[i].from)); err != nil {
			return err
		}
	}
	damaged := first != nil || slices.ContainsFunc(parts, func(p part) bool { return p.damage != "" })
	if damaged && !slices.ContainsFunc(files, (*fitFile).any) {
		if first == nil {
			first = fitError(0, "the file is damaged, and nothing of it can be read")
		}
		return first
	}
	found := false
	for _, f := range files {
		any, err := f.handOver(out)
		if err != nil {
			return err
		}
		found = found || any
	}
	for _, n := range notes {
		out.note(n)
	}
	if !found {
		out.note("the file has no message of a kind that is imported")
	}
	return nil
}

func fitError(at int64, msg string) error {
	return &FileError{Format: FIT, Offset: at, Msg: msg}
}

// brokenError is an error after which nothing more can be decoded. The messages before the error are imported.
type brokenError struct{ *FileError }

// Unwrap returns the error.
func (e *brokenError) Unwrap() error { return e.FileError }

// part is the position of one of several chained FIT files. damage describes an error in the header, length or checksum
// of that file; it is empty if the file is intact.
type part struct {
	from, to int
	next     int // position of the following file, relative to from
	header   int
	damage   string
}

// content returns the bytes of the part. If the part is damaged, they are a copy with the right length in the header
// and with two zero bytes as checksum.
func (p *part) content(data []byte) []byte {
	if p.damage == "" {
		return data[p.from:p.to]
	}
	out := append(slices.Clone(data[p.from:p.to]), 0, 0) // the two bytes of the checksum
	binary.LittleEndian.PutUint32(out[4:8], uint32(len(out)-p.header-2))
	return out
}

// mostChained is the largest number of chained files.
const mostChained = 1000

// splitFIT finds the chained files, and checks their headers, lengths and checksums. An error of a file is stored in
// part.damage. notes describe bytes that belong to no file.
//
// The checksum of a file covers its header. A header with its own checksum makes no difference, because data followed
// by its own checksum has the checksum 0. Older headers of 12 bytes have no checksum, and the decoder checks only the
// messages, so the checksum is computed here.
func splitFIT(data []byte) (parts []part, notes []string, err error) {
	for at := 0; at < len(data) || at == 0; {
		b := data[at:]
		if len(b) < 12 || string(b[8:12]) != ".FIT" || b[0] != 12 && b[0] != 14 || len(b) < int(b[0]) {
			if at == 0 {
				return nil, nil, fitError(0, "the file must begin with a FIT header of 12 or 14 bytes")
			}
			return parts, append(notes, fmt.Sprintf("%d bytes at the end are left out: they are not another recording", len(b))), nil
		}
		p := checkFrame(b)
		at, p.from, p.to = at+p.next, at, at+p.to
		parts = append(parts, p)
		if len(parts) > mostChained {
			return nil, nil, fitError(int64(at), fmt.Sprintf("the file must have at most %d chained FIT files", mostChained))
		}
	}
	return parts, notes, nil
}

const badChecksum = "the checksum is wrong: the file is damaged, and values of it may be wrong"

// checkFrame returns the position of the FIT file at the start of b, relative to b, after checking its header, length
// and checksum. The header must be complete.
func checkFrame(b []byte) part {
	header := int(b[0])
	size := int64(binary.LittleEndian.Uint32(b[4:8]))
	end := int64(header) + size
	sealed := func(end int) bool {
		want := binary.LittleEndian.Uint16(b[end : end+2])
		return checksum(b[:end]) == want || checksum(b[header:end]) == want
	}
	whole := part{header: header, to: len(b), next: len(b)}
	switch last := len(b) - 2; {
	case size == 0:
		whole.damage = "the header says that there are no messages: the recording was not closed"
	case end+2 > int64(len(b)):
		whole.damage = fmt.Sprintf("the file ends before its header says: %d bytes are missing", end+2-int64(len(b)))
	case sealed(int(end)) && (header == 12 || binary.LittleEndian.Uint16(b[12:14]) == 0 || checksum(b[:12]) == binary.LittleEndian.Uint16(b[12:14])):
		return part{header: header, to: int(end) + 2, next: int(end) + 2}
	case last > int(end) && sealed(last):
		whole.to, whole.damage = last, "the header says another length than the file has"
	default:
		return part{header: header, to: int(end), next: int(end) + 2, damage: badChecksum}
	}
	return whole
}

func checksum(b []byte) uint16 {
	h := crc16.New()
	_, _ = h.Write(b)
	return h.Sum16()
}

// mostDescriptions limits the descriptions of developer fields, because the decoder searches all of them for each
// field.
const mostDescriptions = 256

var bytePosition = regexp.MustCompile(`byte pos: (\d+)`)

// fitBudget limits the number of measurements in a chain of files to opts.MaxPoints, of which left may still be read.
type fitBudget struct {
	left int
	opts *Options
}

// decode reads the messages of one file. base is the file's position in a chain of files. If the messages exceed
// budget, decode stops and returns a FileError.
func (f *fitFile) decode(ctx context.Context, data []byte, base int64, budget *fitBudget) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	descriptions := 0
	listen := listener(func(m proto.Message) {
		if m.Num == mesgnum.FieldDescription {
			descriptions++
		}
		budget.left -= f.readMessage(&m)
		switch {
		case budget.left < 0:
			cancel(&FileError{Format: FIT, Msg: budget.opts.named(fmt.Sprintf("the file must have at most %d measurements", budget.opts.MaxPoints), "MaxPoints")})
		case descriptions > mostDescriptions:
			cancel(&FileError{Format: FIT, Msg: fmt.Sprintf("the file must have at most %d descriptions of developer fields", mostDescriptions)})
		}
	})
	d := decoder.New(bytes.NewReader(data), decoder.WithIgnoreChecksum(), decoder.WithNoComponentExpansion(),
		decoder.WithBroadcastOnly(), decoder.WithMesgListener(listen))
	_, err := d.DecodeWithContext(ctx)
	if err == nil && context.Cause(ctx) == nil {
		return nil
	}
	var limit *FileError
	if cause := context.Cause(ctx); cause != nil && !errors.As(cause, &limit) {
		return cause
	}
	at := base
	if err != nil {
		if m := bytePosition.FindStringSubmatch(err.Error()); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			at += n
		}
	}
	switch {
	case limit != nil:
		return fitError(at, limit.Msg)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken(at, "the file ends inside a message")
	case errors.Is(err, decoder.ErrMesgDefMissing):
		return broken(at, "a data message has no definition message before it")
	default:
		return broken(at, "a message cannot be decoded")
	}
}

// listener receives messages of the decoder. They are valid during the call only.
type listener func(proto.Message)

func (l listener) OnMesg(m proto.Message) { l(m) }

func broken(at int64, msg string) error {
	return &brokenError{&FileError{Format: FIT, Offset: at, Msg: msg}}
}

// field returns the raw value of a field, and whether it is present and valid.
func field(m *proto.Message, num byte) (float64, bool) {
	for i := range m.Fields {
		if f := &m.Fields[i]; f.Num == num {
			return raw(f)
		}
	}
	return 0, false
}

func raw(f *proto.Field) (float64, bool) {
	if !f.Value.Valid(f.BaseType) {
		return 0, false
	}
	switch v := f.Value; v.Type() {
	case proto.TypeInt8:
		return float64(v.Int8()), true
	case proto.TypeUint8:
		return float64(v.Uint8()), true
	case proto.TypeInt16:
		return float64(v.Int16()), true
	case proto.TypeUint16:
		return float64(v.Uint16()), true
	case proto.TypeInt32:
		return float64(v.Int32()), true
	case proto.TypeUint32:
		return float64(v.Uint32()), true
	}
	return 0, false
}

// scaled returns raw/scale - offset for the field num, as the FIT profile defines values; NaN if the field has no valid
// value.
func scaled(m *proto.Message, num byte, scale, offset float64) float64 {
	v, ok := field(m, num)
	if !ok {
		return nan
	}
	return v/scale - offset
}

func firstOf(m *proto.Message, num, other byte, scale, offset float64) float64 {
	if v, ok := field(m, num); ok {
		return v/scale - offset
	}
	return scaled(m, other, scale, offset)
}

// semicircles is the number of units of a FIT angle in a degree: 2^31 units are 180 degrees.
const semicircles = (1 << 31) / 180.0

// fitPoint reads a record message, except compressed speed and distance, which depend on earlier records.
func fitPoint(m *proto.Message) point {
	p := newPoint()
	p.lat = scaled(m, fieldnum.RecordPositionLat, semicircles, 0)
	p.lng = scaled(m, fieldnum.RecordPositionLong, semicircles, 0)
	if !(p.lat >= -90 && p.lat <= 90) || !(p.lng >= -180 && p.lng <= 180) {
		p.lat, p.lng = nan, nan
	}
	p.alt = firstOf(m, fieldnum.RecordEnhancedAltitude, fieldnum.RecordAltitude, 5, 500)
	p.speed = firstOf(m, fieldnum.RecordEnhancedSpeed, fieldnum.RecordSpeed, 1000, 0)
	p.dist = scaled(m, fieldnum.RecordDistance, 100, 0)
	if v, ok := field(m, fieldnum.RecordHeartRate); ok && v > 0 { // 0 means that the strap detects no heartbeat
		p.heart = v
	}
	p.cadence = scaled(m, fieldnum.RecordCadence, 1, 0)
	if v := scaled(m, fieldnum.RecordFractionalCadence, 128, 0); v == v {
		p.cadence += v
	}
	if v, ok := field(m, fieldnum.RecordCadence256); ok {
		p.cadence = v / 256
	}
	p.power = scaled(m, fieldnum.RecordPower, 1, 0)
	p.temp = scaled(m, fieldnum.RecordTemperature, 1, 0)
	p.resist = scaled(m, fieldnum.RecordResistance, 1, 0)
	p.breath = scaled(m, fieldnum.RecordEnhancedRespirationRate, 100, 0)
	if p.breath != p.breath {
		p.breath = scaled(m, fieldnum.RecordRespirationRate, 1, 0)
	}
	return p
}

// unpack reads a compressed_speed_distance field: 12 bits of speed in 1/100 m/s, and 12 bits of distance in 1/16 m that
// wrap around after 256 m.
func (f *fitFile) unpack(m *proto.Message, p *point) {
	for i := range m.Fields {
		if m.Fields[i].Num != fieldnum.RecordCompressedSpeedDistance {
			continue
		}
		b := m.Fields[i].Value.SliceUint8()
		if len(b) != 3 || b[0] == 0xff && b[1] == 0xff && b[2] == 0xff {
			return
		}
		p.speed = float64(uint16(b[0])|uint16(b[1]&0xf)<<8) / 100
		low := uint32(b[1]>>4) | uint32(b[2])<<4
		f.sixteenths += (low - f.sixteenths) & 0xfff
		p.dist = float64(f.sixteenths) / 16
		return
	}
}

// fitSports maps pairs of sport and sub sport to slugs.
var fitSports = map[string]string{
	"cycling/road": "road_biking", "cycling/mountain": "mountain_biking", "cycling/downhill": "mountain_biking",
	"cycling/spin": "indoor_cycling", "cycling/indoor_cycling": "indoor_cycling",
	"cycling/gravel_cycling": "gravel_cycling", "cycling/cyclocross": "cyclocross",
	"cycling/track_cycling": "track_cycling", "cycling/hand_cycling": "hand_cycling",
	"cycling/virtual_activity": "virtual_cycling", "running/virtual_activity": "virtual_running",
	"running/treadmill": "treadmill_running", "running/indoor_running": "treadmill_running",
	"running/trail": "trail_running", "running/track": "track_running", "running/ultra": "running",
	"swimming/lap_swimming": "pool_swimming", "swimming/open_water": "open_water_swimming",
	"training/strength_training": "strength_training", "training/cardio_training": "cardio_training",
	"training/yoga": "yoga", "training/pilates": "pilates", "training/hiit": "hiit",
	"training/flexibility_training":     "flexibility_training",
	"fitness_equipment/elliptical":      "elliptical",
	"fitness_equipment/stair_climbing":  "stair_climbing",
	"fitness_equipment/indoor_rowing":   "indoor_rowing",
	"fitness_equipment/indoor_cycling":  "indoor_cycling",
	"fitness_equipment/treadmill":       "treadmill_running",
	"rowing/indoor_rowing":              "indoor_rowing",
	"walking/indoor_walking":            "indoor_walking",
	"rock_climbing/bouldering":          "bouldering",
	"rock_climbing/indoor_climbing":     "indoor_climbing",
	"alpine_skiing/backcountry":         "backcountry_skiing",
	"cross_country_skiing/skate_skiing": "skate_skiing",
	"generic/generic":                   "other", "generic/": "other",
}

// fitSport turns a sport and a sub sport into a slug.
func fitSport(sport, sub float64) string {
	if sport != sport || sport >= float64(typedef.SportInvalid) {
		return "other"
	}
	name := typedef.Sport(sport).String()
	below := ""
	if sub == sub {
		below = typedef.SubSport(sub).String()
	}
	if slug, ok := fitSports[name+"/"+below]; ok {
		return slug
	}
	if name == "generic" || !plainSlug.MatchString(name) {
		return "other"
	}
	return name
}

var plainSlug = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
