package withings

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// hardwares lists the collections of devices.
var hardwares = []rest.Collection{
	{
		Name: "getdevice", Scopes: []string{"user.info"}, Method: http.MethodPost, Path: "/v2/user", Items: "body.devices", Query: action("getdevice"),
		Resources: []string{"device"}, Read: rest.Each(readDevice),
	},
}

// hardware identifies the device that recorded an item.
type hardware struct {
	ID   string `json:"deviceid"`
	Hash string `json:"hash_deviceid"`
	// Model is the name or the number of the model.
	Model   json.RawMessage `json:"model"`
	ModelID int             `json:"modelid"`
	Number  int             `json:"model_id"`
}

// external is the first model number of devices of other vendors.
const external = 1000

// device sets the device of the item in out, and returns its source type; unknown if the model number is not listed.
func (h *hardware) device(out *rest.Batch) healthdata.SourceType {
	n, d := cmp.Or(h.ModelID, h.Number), &healthdata.DeviceInfo{ID: rest.Text(cmp.Or(h.Hash, h.ID))}
	name := ""
	if json.Unmarshal(h.Model, &name) == nil && name != "" {
		d.Model = &name
	} else if n == 0 {
		_ = json.Unmarshal(h.Model, &n) // another form leaves the model unknown
	}
	if n < external {
		d.Manufacturer = rest.Ptr("Withings")
	}
	if d.ID != nil || d.Model != nil {
		out.Device(d)
	}
	switch {
	case n >= 1 && n <= 15, n == 17, n == 18:
		return healthdata.SourceScale
	case n >= 41 && n <= 48:
		return healthdata.SourceCuff
	case n == 16, n >= 51 && n <= 59, n >= 90 && n <= 99, n == 1058:
		return healthdata.SourceWatch
	case n == 32, n >= 60 && n <= 63, n == 1063:
		return healthdata.SourceAutomatic
	case n == 1061:
		return healthdata.SourceFingerprick
	case n >= 1051 && n <= 1062:
		return healthdata.SourcePhone
	}
	return healthdata.SourceUnknown
}

func orUnknown(s, other healthdata.SourceType) healthdata.SourceType {
	if s == healthdata.SourceUnknown {
		return other
	}
	return s
}

// deviceTypes maps the provider's types of devices to source types.
var deviceTypes = map[string]healthdata.SourceType{
	"Scale": healthdata.SourceScale, "Blood Pressure Monitor": healthdata.SourceCuff, "Activity Tracker": healthdata.SourceWatch,
	"Sleep Monitor": healthdata.SourceAutomatic,
}

func readDevice(v *struct {
	hardware
	Type     string  `json:"type"`
	Name     *string `json:"model"`
	Firmware *string `json:"fw"`
}, out *rest.Batch,
) {
	source, known := deviceTypes[v.Type]
	if !known {
		source = healthdata.SourceUnknown
	}
	out.Listed(source, healthdata.DeviceInfo{
		ID: rest.Text(cmp.Or(v.Hash, v.ID)), Manufacturer: rest.Ptr("Withings"), Model: v.Name, Version: v.Firmware,
	})
}
