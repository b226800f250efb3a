package fileimport

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// point holds the measurements of one instant of a recording. NaN means not measured.
type point struct {
	micros                 int64 // Unix time in microseconds
	lat, lng               float64
	alt, dist, speed       float64 // m, m since the start, m/s
	heart, cadence, breath float64 // per minute; cadence in the unit of the device
	power, temp, resist    float64
	// gap means that the recording was paused between the previous point and this one.
	gap bool
	// strap means that the point is a heart rate that a chest strap has stored. It may lie outside of the session.
	strap bool
}

var nan = math.NaN()

func newPoint() point {
	return point{
		lat: nan, lng: nan, alt: nan, dist: nan, speed: nan, heart: nan, cadence: nan, breath: nan,
		power: nan, temp: nan, resist: nan,
	}
}

// empty reports whether nothing was measured.
func (p *point) empty() bool {
	for _, v := range [...]float64{
		p.lat, p.lng, p.alt, p.dist, p.speed, p.heart, p.cadence, p.breath, p.power, p.temp, p.resist,
	} {
		if !math.IsNaN(v) {
			return false
		}
	}
	return true
}

// recording holds the points of one workout.
type recording struct {
	points []point
	onFoot bool
}

const (
	// movingSpeed is the speed, in m/s, from which a person counts as moving.
	movingSpeed = 0.3
	// climbNoise is the rise, in metres, up to which a change of altitude counts as noise.
	climbNoise = 2
	// climbWindow is the number of points over which altitudes are averaged.
	climbWindow = 5
	// earthRadius is the mean radius of the Earth in metres (IUGG).
	earthRadius = 6371008.8
)

func haversine(lat1, lng1, lat2, lng2 float64) float64 {
	const rad = math.Pi / 180
	sinLat, sinLng := math.Sin((lat2-lat1)*rad/2), math.Sin((lng2-lng1)*rad/2)
	h := sinLat*sinLat + math.Cos(lat1*rad)*math.Cos(lat2*rad)*sinLng*sinLng
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// measure derives missing distances from positions and speeds from distances, except over a pause. The points must have
// passed output.plausiblePoints.
func (r *recording) measure() {
	slices.SortStableFunc(r.points, func(a, b point) int { return cmp.Compare(a.micros, b.micros) })
	known := func(of func(*point) float64) bool {
		return slices.ContainsFunc(r.points, func(p point) bool { return !math.IsNaN(of(&p)) })
	}
	if !known(func(p *point) float64 { return p.dist }) {
		total, last := 0.0, -1
		for i := range r.points {
			p := &r.points[i]
			if math.IsNaN(p.lat) || math.IsNaN(p.lng) {
				continue
			}
			if last >= 0 && !p.gap {
				total += haversine(r.points[last].lat, r.points[last].lng, p.lat, p.lng)
			}
			p.dist, last = total, i
		}
	}
	if !known(func(p *point) float64 { return p.speed }) {
		for i := 1; i < len(r.points); i++ {
			a, p := &r.points[i-1], &r.points[i]
			if dt := float64(p.micros-a.micros) / 1e6; dt > 0 && !p.gap {
				p.speed = (p.dist - a.dist) / dt
			}
		}
	}
}

// fill sets missing totals of a workout from its points.
func (r *recording) fill(w *healthdata.Workout) {
	if len(r.points) == 0 {
		return
	}
	setMean := func(into **float64, of func(*point) float64) {
		if *into == nil {
			*into = mean(r.points, of)
		}
	}
	setMost := func(into **float64, of func(*point) float64) {
		if *into == nil {
			*into = most(r.points, of)
		}
	}
	heart := func(p *point) float64 { return p.heart }
	power := func(p *point) float64 { return p.power }
	if w.AverageHR == nil {
		w.AverageHR = rounded(mean(r.points, heart))
	}
	if w.MaxHR == nil {
		w.MaxHR = rounded(most(r.points, heart))
	}
	setMost(&w.Distance, func(p *point) float64 { return p.dist })
	setMean(&w.AverageWatts, power)
	setMost(&w.MaxWatts, power)
	setMost(&w.MaxSpeed, func(p *point) float64 { return p.speed })
	setMost(&w.ElevHigh, func(p *point) float64 { return p.alt })
	if w.ElevLow == nil {
		if v := most(r.points, func(p *point) float64 { return -p.alt }); v != nil {
			w.ElevLow = new(-*v)
		}
	}
	if w.TotalElevationGain == nil {
		w.TotalElevationGain = r.climb()
	}
	if w.MovingTime == nil {
		w.MovingTime = r.moving()
	}
	if w.AverageSpeed == nil && w.Distance != nil && w.MovingTime != nil && *w.MovingTime > 0 {
		w.AverageSpeed = new(*w.Distance / float64(*w.MovingTime))
	}
	if w.Map == nil {
		w.Map = r.route()
	}
}

// moving returns the number of seconds in which the person moved; nil if the recording has no distances.
func (r *recording) moving() *int64 {
	seconds, any := 0.0, false
	for i := 1; i < len(r.points); i++ {
		a, p := &r.points[i-1], &r.points[i]
		dt := float64(p.micros-a.micros) / 1e6
		d := p.dist - a.dist
		if math.IsNaN(d) {
			continue
		}
		any = true
		if !p.gap && dt > 0 && d/dt >= movingSpeed {
			seconds += dt
		}
	}
	if !any {
		return nil
	}
	return new(int64(math.Round(seconds)))
}

// climb returns the metres climbed; nil without altitudes. Altitudes are averaged over five points, and a rise
// counts if it is at least two metres, measured from the last change of direction. Without this, noise of satellite
// positions would add up to a climb on level ground.
func (r *recording) climb() *float64 {
	var alt []float64
	for i := range r.points {
		if a := r.points[i].alt; !math.IsNaN(a) {
			alt = append(alt, a)
		}
	}
	if len(alt) < 2 {
		return nil
	}
	gain, from := 0.0, nan
	for i := range alt {
		sum, n := 0.0, 0
		for j := max(0, i-climbWindow/2); j <= min(len(alt)-1, i+climbWindow/2); j++ {
			sum += alt[j]
			n++
		}
		switch a := sum / float64(n); {
		case math.IsNaN(from), a <= from-climbNoise:
			from = a
		case a >= from+climbNoise:
			gain += a - from
			from = a
		}
	}
	return &gain
}

// Largest numbers of positions in a polyline. A position takes up to twelve bytes, and the texts of a workout are
// limited to one megabyte.
const (
	mostRoutePoints   = 80_000
	mostSummaryPoints = 100
)

// route returns the positions as a map, or nil.
func (r *recording) route() *healthdata.Map {
	var lat, lng []float64
	for i := range r.points {
		if p := &r.points[i]; !math.IsNaN(p.lat) && !math.IsNaN(p.lng) {
			lat, lng = append(lat, p.lat), append(lng, p.lng)
		}
	}
	if len(lat) == 0 {
		return nil
	}
	full, coarse := polyline(lat, lng, mostRoutePoints), polyline(lat, lng, mostSummaryPoints)
	return &healthdata.Map{Polyline: &full, SummaryPolyline: &coarse}
}

// polyline encodes at most limit positions, including the first and last.
func polyline(lat, lng []float64, limit int) string {
	if n := len(lat); n > limit {
		y, x := make([]float64, limit), make([]float64, limit)
		for i := range limit {
			j := i * (n - 1) / (limit - 1)
			y[i], x[i] = lat[j], lng[j]
		}
		lat, lng = y, x
	}
	return healthdata.EncodePolyline(lat, lng)
}

// stream returns the points as columns. Columns in which nothing was measured are
// empty.
func (r *recording) stream() healthdata.WorkoutStream {
	s := healthdata.WorkoutStream{Time: make([]int64, len(r.points))}
	for i := range r.points {
		s.Time[i] = int64(math.Round(float64(r.points[i].micros) / 1e6))
	}
	steps := 1.0
	if r.onFoot {
		steps = 2 // devices count a stride as one, which is two steps
	}
	column := func(of func(*point) float64) []*float64 { return columnOf(r.points, of) }
	s.Cadence = column(func(p *point) float64 { return p.cadence * steps })
	s.Altitude = column(func(p *point) float64 { return p.alt })
	s.VelocitySmooth = column(func(p *point) float64 { return p.speed })
	s.Lat = column(func(p *point) float64 { return p.lat })
	s.Lng = column(func(p *point) float64 { return p.lng })
	s.Distance = column(func(p *point) float64 { return p.dist })
	s.Power = column(func(p *point) float64 { return p.power })
	s.Temperature = column(func(p *point) float64 { return p.temp })
	s.Resistance = column(func(p *point) float64 { return p.resist })
	if heart := column(func(p *point) float64 { return p.heart }); len(heart) > 0 {
		whole := make([]int64, len(heart))
		s.Heartrate = make([]*int64, len(heart))
		for i, v := range heart {
			if v != nil {
				whole[i] = int64(math.Round(*v))
				s.Heartrate[i] = &whole[i]
			}
		}
	}
	return s
}

// columnOf returns one value of every point, nil where it was not measured. It returns an empty column if no point has
// the value.
func columnOf(points []point, of func(*point) float64) []*float64 {
	n := 0
	for i := range points {
		if !math.IsNaN(of(&points[i])) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	values := make([]float64, 0, n)
	out := make([]*float64, len(points))
	for i := range points {
		if v := of(&points[i]); !math.IsNaN(v) {
			values = append(values, v)
			out[i] = &values[len(values)-1]
		}
	}
	return out
}

// samples stores one sample of resource for every point for which of returns a number. offset is seconds east of UTC;
// nil if unknown.
func (r *recording) samples(o *output, resource string, source healthdata.Source, offset *int, of func(*point) float64) error {
	unit := healthdata.ResourceBySlug(resource).Unit
	var batch []healthdata.Sample
	for i := range r.points {
		p := &r.points[i]
		v := of(p)
		if math.IsNaN(v) {
			continue
		}
		s := healthdata.Sample{Timestamp: atMicros(p.micros), Unit: unit, Value: healthdata.Number(v)}
		if offset != nil {
			s.TimezoneOffset = new(*offset)
		}
		batch = append(batch, s)
		if len(batch) == o.opts.BatchSize {
			if err := o.samples(resource, source, batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	return o.samples(resource, source, batch)
}

// handOver passes a workout, its stream and the samples measured during the workout to the sink.
func (o *output) handOver(w *healthdata.Workout, r *recording) error {
	refused := o.rep.Refused["workouts"]
	if err := o.summaries("workouts", w); err != nil {
		return err
	}
	if len(r.points) == 0 {
		return nil
	}
	if o.rep.Refused["workouts"] > refused {
		o.countSkipped("stream of a workout that is refused", 1)
	} else if err := o.stream(w, r.stream()); err != nil {
		return err
	}
	err := r.samples(o, "heartrate", w.Source, w.TimezoneOffset, func(p *point) float64 { return p.heart })
	if err != nil {
		return err
	}
	return r.samples(o, "respiratory_rate", w.Source, w.TimezoneOffset, func(p *point) float64 { return p.breath })
}

func mean(points []point, of func(*point) float64) *float64 {
	sum, n := 0.0, 0
	for i := range points {
		if v := of(&points[i]); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

func most(points []point, of func(*point) float64) *float64 {
	found := nan
	for i := range points {
		if v := of(&points[i]); !math.IsNaN(v) && !(found >= v) {
			found = v
		}
	}
	if math.IsNaN(found) {
		return nil
	}
	return &found
}

func rounded(v *float64) *int64 {
	if v == nil || math.Abs(*v) > 1e15 {
		return nil
	}
	return new(int64(math.Round(*v)))
}

func atMicros(micros int64) healthlab.Time {
	return healthlab.At(time.UnixMicro(micros))
}

func onFoot(sport string) bool {
	return strings.Contains(sport, "running") || strings.Contains(sport, "walking") || sport == "hiking"
}
