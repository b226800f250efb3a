package healthdata

import (
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Meal is one meal. Its totals are those of the source: they are not computed from the foods.
type Meal struct {
	Head
	// ProviderID is the same as ID. Deprecated.
	ProviderID string `json:"provider_id" wire:"out"`
	// PriorityID is always 0. Deprecated.
	PriorityID int `json:"priority_id" wire:"out"`
	// SourceID is the service's number for the provider, as of [SourceNumber]. Deprecated.
	SourceID int `json:"source_id" wire:"out"`
	// Timestamp is when the meal was eaten, in UTC.
	Timestamp healthlab.Time `json:"timestamp" wire:"offset"`
	// TimezoneOffset is seconds east of UTC at Timestamp; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	// CalendarDate is the local day that the user recorded.
	CalendarDate healthlab.Date `json:"calendar_date" wire:"opt"`
	// Name is the name of the meal.
	Name string `json:"name"`
	// Energy, Macros and Micros are null if they are not known.
	Energy *Energy `json:"energy"`
	Macros *Macros `json:"macros"`
	Micros *Micros `json:"micros"`
	// Data holds the foods by name.
	Data           map[string]Food `json:"data" wire:"opt"`
	SourceAppID    *string         `json:"source_app_id" wire:"out"`
	SourceDeviceID *uuid.UUID      `json:"source_device_id" wire:"out"`
}

// Food is one food of a meal.
type Food struct {
	Energy *Energy `json:"energy,omitempty"`
	Macros *Macros `json:"macros,omitempty"`
	Micros *Micros `json:"micros,omitempty"`
}

// Energy is an amount of energy. Unit is always kcal.
type Energy struct {
	Unit  string  `json:"unit" wire:"opt"`
	Value float64 `json:"value"`
}

// Macros are amounts in grams.
type Macros struct {
	Carbs       *float64 `json:"carbs"`
	Protein     *float64 `json:"protein"`
	Fats        *Fats    `json:"fats"`
	Alcohol     *float64 `json:"alcohol"`
	Water       *float64 `json:"water"`
	Fibre       *float64 `json:"fibre"`
	Sugar       *float64 `json:"sugar"`
	Cholesterol *float64 `json:"cholesterol"`
}

// Fats are amounts in grams.
type Fats struct {
	Saturated       *float64 `json:"saturated"`
	Monounsaturated *float64 `json:"monounsaturated"`
	Polyunsaturated *float64 `json:"polyunsaturated"`
	Omega3          *float64 `json:"omega3"`
	Omega6          *float64 `json:"omega6"`
	Total           *float64 `json:"total"`
}

// Micros are amounts of nutrients by name. An unknown group is empty. The JSON has no units: [MicroUnit] returns
// them.
type Micros struct {
	Minerals      map[string]float64 `json:"minerals" wire:"opt"`
	TraceElements map[string]float64 `json:"trace_elements" wire:"opt"`
	Vitamins      map[string]float64 `json:"vitamins" wire:"opt"`
}

// microUnits has the unit of each known nutrient of [Micros].
var microUnits = map[string]string{
	"sodium": "mg", "potassium": "mg", "calcium": "mg", "phosphorus": "mg", "magnesium": "mg",
	"iron": "mg", "zinc": "mg", "fluoride": "mg", "chloride": "mg",
	"chromium": "µg", "iodine": "µg", "molybdenum": "µg", "selenium": "µg",
	"copper": "mg", "manganese": "mg",
	"vitamin_a": "µg", "vitamin_b12": "µg", "vitamin_d": "µg", "vitamin_k": "µg",
	"biotin": "µg", "folic_acid": "µg",
	"vitamin_b1": "mg", "riboflavin": "mg", "niacin": "mg", "pantothenic_acid": "mg",
	"vitamin_b6": "mg", "vitamin_c": "mg", "vitamin_e": "mg",
}

// MicroUnit returns the unit of a nutrient of [Micros], mg or µg; empty if the
// nutrient is not known.
func MicroUnit(nutrient string) string { return microUnits[nutrient] }

func (m *Meal) naturalKey() string  { return m.key(instantKey(m.Timestamp) + "\x00" + m.Name) }
func (m *Meal) index() time.Time    { return m.Timestamp.UTC() }
func (m *Meal) day() healthlab.Date { return m.CalendarDate }

func (m *Meal) times() []moment {
	return []moment{{"timestamp", &m.Timestamp}}
}

func (m *Meal) zone() (**int, *string) { return &m.TimezoneOffset, nil }

func (m *Meal) complete() {
	if m.CalendarDate.IsZero() {
		m.CalendarDate = localDay(m.Timestamp, m.TimezoneOffset)
	}
	m.ProviderID, m.PriorityID, m.SourceID = m.ID.String(), 0, SourceNumber(m.Source.Provider)
	m.SourceAppID, m.SourceDeviceID = m.Source.AppID, m.Source.DeviceID
	if m.Data == nil {
		m.Data = map[string]Food{}
	}
	m.Micros.complete()
	for _, food := range m.Data {
		food.Micros.complete()
	}
}

// complete replaces nil groups by empty ones.
func (m *Micros) complete() {
	if m == nil {
		return
	}
	for _, group := range [...]*map[string]float64{&m.Minerals, &m.TraceElements, &m.Vitamins} {
		if *group == nil {
			*group = map[string]float64{}
		}
	}
}

// convertEnergy converts energies to kilocalories. Those that cannot be converted stay, and check reports them.
func (m *Meal) convertEnergy() {
	m.energies(func(e *Energy, _ ...any) {
		if v, ok := kilocalories(e); ok && check.Finite(v) {
			e.Value, e.Unit = v, energyUnit
		}
	})
}

func (m *Meal) check(p *healthlab.Problems) {
	if m.Timestamp.IsZero() {
		p.Add("missing", "must be set, and be 1900-01-01 or later", "timestamp")
	}
	m.energies(func(e *Energy, path ...any) {
		v, ok := kilocalories(e)
		if !ok {
			p.Add("unit", "must be "+energyUnit+" or a unit that is converted to it, such as kJ", append(path, "energy", "unit")...)
		} else if !check.Finite(v) && check.Finite(e.Value) {
			check.NotFinite(p, energyUnit, append(path, "energy", "value")...)
		}
	})
	check.Numbers(p, m)
}

// energyUnit is the unit of every energy.
const energyUnit = "kcal"

func kilocalories(e *Energy) (v float64, ok bool) {
	if e.Unit == "" {
		return e.Value, true
	}
	return ResourceBySlug("calories_active").Convert(e.Value, e.Unit, "")
}

// energies calls visit with the energy of the meal and of each food, and with the path of its field. In the path, an
// asterisk stands for the name of a food.
func (m *Meal) energies(visit func(e *Energy, path ...any)) {
	if m.Energy != nil {
		visit(m.Energy)
	}
	for _, food := range m.Data {
		if food.Energy != nil {
			visit(food.Energy, "data", "*")
		}
	}
}
