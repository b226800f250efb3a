package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// setting is a setting of the team with the inputs of its form.
type setting struct {
	Name, Description string
	Kind              string // switch, select, number, text, lines, object, rows or history
	Options           []string
	Value             string
	Raw               string // value as JSON, for a setting with several fields
	// Fields holds the inputs of an object, and Rows those of each row of a list, with an empty row at the end.
	Fields []settingField
	Rows   [][]settingField
	schema contractSchema // schema of an object, or of a row
}

// settingField is one input of a setting.
type settingField struct {
	Key, Label, Description string
	Kind                    string // text, number, lines or checks
	Options                 []string
	Value                   string
	Values                  []string
}

// Has reports whether an option is selected.
func (f settingField) Has(option string) bool { return slices.Contains(f.Values, option) }

// settings reads the settings of the team. The contract provides the kind of each input and its description.
func (s *Console) settings(r *http.Request, on *session, c *contract) (list []setting, err error) {
	var values map[string]json.RawMessage
	if err := s.optional(s.manage(r, on, http.MethodGet, s.teamPath()+"/settings", nil, nil, &values)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		one := c.setting(name)
		if err := one.fill(values[name]); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// setting returns a team setting without its value. Kind, choices and description come from the contract.
func (c *contract) setting(name string) setting {
	schema := c.Components.Schemas["TeamSettingsChange"].Properties[name]
	one := setting{Name: name, Description: schema.Description, Kind: "history"}
	whole := c.resolve(schema)
	switch {
	case schema.is("boolean"):
		one.Kind = "switch"
	case len(schema.Enum) > 0:
		one.Kind, one.Options = "select", slices.DeleteFunc(slices.Clone(schema.Enum), func(v string) bool { return v == "" })
	case schema.is("integer"):
		one.Kind = "number"
	case schema.is("string"):
		one.Kind = "text"
	case schema.is("array") && schema.Items != nil && schema.Items.is("string"):
		one.Kind = "lines"
	case schema.is("array") && schema.Items != nil:
		one.Kind, one.schema = "rows", c.resolve(*schema.Items)
	case len(whole.Properties) > 0:
		one.Kind, one.schema = "object", whole
	}
	return one
}

// fill sets the inputs of a setting to value, which is the JSON that the API returned.
func (o *setting) fill(value json.RawMessage) error {
	empty := string(value) == "null"
	switch o.Kind {
	case "object":
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(value, &fields); err != nil {
			return fmt.Errorf("setting %s: %w", o.Name, err)
		}
		o.Raw, o.Fields = string(value), o.fields("set."+o.Name, fields)
	case "rows":
		var rows []map[string]json.RawMessage
		if err := json.Unmarshal(value, &rows); err != nil {
			return fmt.Errorf("setting %s: %w", o.Name, err)
		}
		o.Raw = string(value)
		for i, row := range append(rows, nil) {
			fields := o.fields(fmt.Sprintf("set.%s.%d", o.Name, i), row)
			for k := range fields {
				if i < len(rows) { // all but the blank row, which only has the descriptions
					fields[k].Description = ""
				}
			}
			o.Rows = append(o.Rows, fields)
		}
	case "history":
		return o.fillHistory(value)
	case "select", "text":
		if !empty {
			return json.Unmarshal(value, &o.Value)
		}
	case "lines":
		var lines []string
		if err := json.Unmarshal(value, &lines); err != nil {
			return err
		}
		o.Value = strings.Join(lines, "\n")
	default:
		if !empty {
			o.Value = string(value)
		}
	}
	return nil
}

// fields returns the inputs of an object, required ones first, then by name. key is the prefix of their names.
func (o *setting) fields(key string, values map[string]json.RawMessage) (list []settingField) {
	names := slices.Clone(o.schema.Required)
	for _, name := range slices.Sorted(maps.Keys(o.schema.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		schema := o.schema.Properties[name]
		f := settingField{Key: key + "." + name, Label: words(name), Description: schema.Description, Kind: "text"}
		switch {
		case schema.is("integer"):
			f.Kind = "number"
		case schema.Items != nil:
			if f.Kind, f.Options = "lines", schema.Items.OpenEnum; len(f.Options) > 0 {
				f.Kind = "checks"
			}
			_ = json.Unmarshal(values[name], &f.Values) // absent, or a list that the API sends
			f.Value = strings.Join(f.Values, "\n")
		}
		var text any
		if json.Unmarshal(values[name], &text) == nil && text != nil && schema.Items == nil {
			f.Value = fmt.Sprint(text)
		}
		list = append(list, f)
	}
	return list
}

// history is the setting of how far back the data of a provider is fetched.
type history struct {
	Default   historyDays            `json:"default"`
	Overrides map[string]historyDays `json:"resource_overrides,omitempty"`
}

type historyDays struct {
	Days int `json:"historical_days_to_pull"`
}

// fillHistory adds a row of inputs for each provider with its own history, and an empty row for a new one.
func (o *setting) fillHistory(value json.RawMessage) error {
	var by map[string]history
	if err := json.Unmarshal(value, &by); err != nil {
		return fmt.Errorf("setting %s: %w", o.Name, err)
	}
	o.Raw = string(value)
	for i, slug := range append(slices.Sorted(maps.Keys(by)), "") {
		key, days, lines := fmt.Sprintf("set.%s.%d", o.Name, i), "", []string{}
		if slug != "" {
			days = strconv.Itoa(by[slug].Default.Days)
		}
		for _, name := range slices.Sorted(maps.Keys(by[slug].Overrides)) {
			lines = append(lines, fmt.Sprintf("%s %d", name, by[slug].Overrides[name].Days))
		}
		o.Rows = append(o.Rows, []settingField{
			{Key: key + ".provider", Label: "provider", Kind: "text", Value: slug},
			{Key: key + ".days", Label: "days", Kind: "number", Value: days},
			{Key: key + ".resources", Label: "resources with other days", Description: "One a line: a resource, a space and its days.", Kind: "lines", Value: strings.Join(lines, "\n")},
		})
	}
	return nil
}

// value returns the value that the form has for the setting, as the API expects it; nil to reset it to the default.
func (o *setting) value(r *http.Request) (any, error) {
	text := unixLines(r.PostFormValue("set." + o.Name))
	switch {
	case o.Kind == "object":
		return o.object(r, "set."+o.Name)
	case o.Kind == "rows":
		var list []any
		for _, key := range o.rows(r) {
			row, err := o.object(r, key)
			if err != nil {
				return nil, err
			}
			if row != nil {
				list = append(list, row)
			}
		}
		if list == nil {
			return nil, nil //nolint:nilnil // null resets to the default
		}
		return list, nil
	case o.Kind == "history":
		return o.histories(r)
	case o.Kind == "switch":
		return text == "true", nil
	case strings.TrimSpace(text) == "":
		return nil, nil //nolint:nilnil // null resets to the default
	case o.Kind == "number":
		return parseIntField(o.Name, text)
	case o.Kind == "lines":
		return strings.Fields(text), nil
	}
	return text, nil
}

// parseIntField parses the whole number in a form field. Its error names the field.
func parseIntField(name, text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, &apiError{Status: http.StatusUnprocessableEntity, Message: name + ": must be a whole number"}
	}
	return n, nil
}

// rows returns the prefixes of the input names of each row of a sent form, in the order of the rows.
func (o *setting) rows(r *http.Request) (keys []string) {
	head := "set." + o.Name + "."
	var numbers []int
	for name := range r.PostForm {
		rest, ok := strings.CutPrefix(name, head)
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); ok && err == nil && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		keys = append(keys, head+strconv.Itoa(n))
	}
	return keys
}

// object returns the object that the inputs with the prefix key describe; nil if all are empty.
func (o *setting) object(r *http.Request, key string) (any, error) {
	out := map[string]any{}
	filled := false
	for _, f := range o.fields(key, nil) {
		name := f.Key[strings.LastIndexByte(f.Key, '.')+1:]
		text := strings.TrimSpace(unixLines(r.PostFormValue(f.Key)))
		var err error
		switch {
		case f.Kind == "checks":
			if ticked := r.PostForm[f.Key]; len(ticked) > 0 {
				out[name], filled = ticked, true
			}
			continue
		case text == "":
			if f.Kind == "text" && slices.Contains(o.schema.Required, name) {
				out[name] = "" // the API says what is missing
			}
			continue
		case f.Kind == "number":
			out[name], err = parseIntField(o.Name+"."+name, text)
		case f.Kind == "lines":
			out[name] = strings.Fields(text)
		default:
			out[name] = text
		}
		if err != nil {
			return nil, err
		}
		filled = true
	}
	if !filled {
		return nil, nil //nolint:nilnil // null resets to the default
	}
	return out, nil
}

// histories returns, by provider, how far back its data is fetched, as the rows of the form say. A provider that the
// form no longer lists has the value nil.
func (o *setting) histories(r *http.Request) (any, error) {
	out := map[string]any{}
	var was map[string]history
	_ = json.Unmarshal([]byte(r.PostFormValue("was."+o.Name)), &was) // the providers that the page showed
	for slug := range was {
		out[slug] = nil
	}
	for _, key := range o.rows(r) {
		slug, days := strings.TrimSpace(r.PostFormValue(key+".provider")), r.PostFormValue(key+".days")
		if slug == "" || strings.TrimSpace(days) == "" {
			continue
		}
		n, err := parseIntField(o.Name+".days", days)
		if err != nil {
			return nil, err
		}
		one := history{Default: historyDays{n}}
		for text := range strings.Lines(unixLines(r.PostFormValue(key + ".resources"))) {
			name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
			if name == "" {
				continue
			}
			if n, err = parseIntField(o.Name+".resources", rest); err != nil {
				return nil, err
			}
			if one.Overrides == nil {
				one.Overrides = map[string]historyDays{}
			}
			one.Overrides[name] = historyDays{n}
		}
		out[slug] = one
	}
	return out, nil
}

// changeSettings sends the settings that were changed in the form. The form field "was.NAME" holds the value of the
// setting NAME when the page was shown, and "set.NAME" the new one.
func (s *Console) changeSettings(w http.ResponseWriter, r *http.Request, on *session) error {
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	in := map[string]any{}
	for key := range r.PostForm {
		name, ok := strings.CutPrefix(key, "was.")
		if !ok {
			continue
		}
		one := c.setting(name)
		set, err := one.value(r)
		if err != nil {
			return err
		}
		var was any = unixLines(r.PostFormValue(key))
		switch one.Kind {
		case "object", "rows", "history":
			if err := json.Unmarshal([]byte(r.PostFormValue(key)), &was); err != nil {
				return &apiError{Status: http.StatusUnprocessableEntity, Message: name + ": the form is broken; open the page once more"}
			}
			if plain(was) == plain(set) {
				continue
			}
		default:
			now := unixLines(r.PostFormValue("set." + name))
			if one.Kind == "switch" && now == "" {
				now = "false" // a box without its tick is not sent
			}
			if was == any(now) {
				continue
			}
		}
		in[name] = set
	}
	if len(in) > 0 {
		if err := s.manage(r, on, http.MethodPatch, s.teamPath()+"/settings", nil, in, nil); err != nil {
			return err
		}
	}
	http.Redirect(w, r, s.Path+"/team?saved=1", http.StatusSeeOther)
	return nil
}

// plain returns a value as JSON without null and empty members, to compare two values of a setting.
func plain(v any) string {
	b, _ := json.Marshal(v) // values that always encode
	var read any
	_ = json.Unmarshal(b, &read)
	b, _ = json.Marshal(dropEmpty(read))
	return string(b)
}

// dropEmpty returns a value of JSON without members that are null or empty; nil if nothing is left.
func dropEmpty(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, one := range x {
			if x[k] = dropEmpty(one); x[k] == nil {
				delete(x, k)
			}
		}
		if len(x) == 0 {
			return nil
		}
	case []any:
		for i := range x {
			x[i] = dropEmpty(x[i])
		}
		if len(x) == 0 {
			return nil
		}
	case string:
		if x == "" {
			return nil
		}
	}
	return v
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
