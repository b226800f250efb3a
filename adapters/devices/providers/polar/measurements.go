package polar

import (
	"math"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// measurements lists the collections of single measurements and of body data.
var measurements = []rest.Collection{
	{
		Name: "bodytemperature", Scopes: scopes, Path: users + "/biosensing/bodytemperature", Range: utcDays, Missing: missing,
		Messages: []string{"SLEEP"}, Resources: []string{"body_temperature"}, Read: rest.Each(readTemperature),
	},
	{
		Name: "spo2", Scopes: scopes, Path: users + "/biosensing/spo2", Range: utcDays, Missing: missing,
		Messages: []string{"SLEEP"}, Resources: []string{"blood_oxygen"}, Read: rest.Each(readSpO2),
	},
	{
		Name: "ecg", Scopes: scopes, Path: users + "/biosensing/ecg", Range: utcDays, Missing: missing,
		Messages: []string{"SLEEP"}, Resources: []string{"electrocardiogram", "electrocardiogram_voltage"}, Read: rest.Each(readECG),
	},
	{
		Name: "physical_info", Scopes: scopes, Path: users + "/physical-info", Missing: missing,
		Messages: []string{"PHYSICAL_INFORMATION"}, Resources: []string{"profile", "weight", "vo2_max"}, Read: rest.Each(readBody),
	},
}

func readTemperature(v *struct {
	Type    string `json:"measurement_type"`
	Start   clock  `json:"start_time"`
	Samples rest.List[struct {
		Celsius *float64 `json:"temperature_celsius"`
		Delta   float64  `json:"recording_time_delta_milliseconds"`
	}] `json:"samples"`
}, out *rest.Batch,
) {
	var place *string
	if strings.HasPrefix(v.Type, "TM_SKIN") {
		place = rest.Ptr("skin")
	}
	for _, s := range v.Samples.In(out, "samples") {
		out.Sample("body_temperature", watch, healthdata.Sample{
			Timestamp: v.Start.plus(s.Delta), Unit: "°C", Value: rest.Number(s.Celsius), SensorLocation: place,
		})
	}
}

func readSpO2(v *struct {
	unix
	Status  string   `json:"test_status"`
	Percent *float64 `json:"blood_oxygen_percent"`
}, out *rest.Batch,
) {
	if v.Status == "SPO2_TEST_PASSED" {
		out.Sample("blood_oxygen", watch, healthdata.Sample{Timestamp: v.at().Time, TimezoneOffset: v.offset(), Unit: "%", Value: rest.Number(v.Percent)})
	}
}

func readECG(v *struct {
	unix
	HR      *float64 `json:"average_heart_rate_bpm"`
	Samples rest.List[struct {
		Delta float64  `json:"recording_time_delta_ms"`
		MV    *float64 `json:"amplitude_mv"`
	}] `json:"samples"`
}, out *rest.Batch,
) {
	list := v.Samples.In(out, "samples")
	n := len(list)
	if n == 0 {
		return
	}
	first, last := list[0].Delta, list[n-1].Delta
	e := &healthdata.Electrocardiogram{
		Head: healthdata.Head{ExternalID: strconv.FormatInt(v.Time, 10)}, SessionStart: v.at().plus(first), SessionEnd: v.at().plus(last),
		VoltageSampleCount: int64(n), HeartRateMean: rest.Round(v.HR),
	}
	if last > first {
		e.SamplingFrequencyHz = rest.Ptr(math.Round(float64(n-1) / (last - first) * 1000))
	}
	out.Summary("electrocardiogram", watch, e)
	for _, s := range list {
		out.Sample("electrocardiogram_voltage", watch, healthdata.Sample{
			Timestamp: v.at().plus(s.Delta), TimezoneOffset: v.offset(), Type: rest.Ptr("lead_1"), Unit: "mV", Value: rest.Number(s.MV),
		})
	}
}

func readBody(v *struct {
	Height   *float64        `json:"height"`
	Birthday *healthlab.Date `json:"birthday"`
	Gender   string          `json:"gender"`
	Weight   *float64        `json:"weight"`
	Source   string          `json:"weight_source"`
	VO2Max   *float64        `json:"vo2_max"`
	Modified clock           `json:"modified"`
}, out *rest.Batch,
) {
	p := &healthdata.Profile{Height: rest.Round(v.Height), BirthDate: v.Birthday}
	if v.Gender != "" {
		p.Sex = rest.Ptr(strings.ToLower(v.Gender))
	}
	out.Summary("profile", healthdata.SourceApp, p)
	if v.Modified.IsZero() {
		return
	}
	if v.Source == "SOURCE_MEASURED" {
		out.Sample("weight", healthdata.SourceScale, healthdata.Sample{Timestamp: v.Modified.Time, Unit: "kg", Value: rest.Number(v.Weight)})
	}
	out.Sample("vo2_max", watch, healthdata.Sample{Timestamp: v.Modified.Time, Unit: "mL/kg/min", Value: rest.Number(v.VO2Max)})
}
