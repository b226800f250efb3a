package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// setting is a setting of the team as a control of a form.
type setting struct {
	Name, Description string
	Kind              string // switch, select, number, text, lines or json
	Options           []string
	Value             string
}

// settings reads the settings of the team. Their controls and descriptions are those of the contract.
func (s *Console) settings(r *http.Request, on *session, c *contract) (list []setting, err error) {
	var values map[string]json.RawMessage
	if err := s.optional(s.manage(r, on, http.MethodGet, s.teamPath()+"/settings", nil, nil, &values)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		one := c.setting(name)
		one.Value = one.text(values[name])
		list = append(list, one)
	}
	return list, nil
}

// setting returns the control of a setting.
func (c *contract) setting(name string) setting {
	schema := c.Components.Schemas["TeamSettingsChange"].Properties[name]
	one := setting{Name: name, Description: schema.Description, Kind: "json"}
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
	}
	return one
}

// text returns a value as the control shows it, "" for null.
func (o *setting) text(value json.RawMessage) string {
	if string(value) == "null" {
		return ""
	}
	switch o.Kind {
	case "switch", "number":
		return string(value)
	case "select", "text":
		var text string
		if json.Unmarshal(value, &text) == nil {
			return text
		}
	case "lines":
		var lines []string
		if json.Unmarshal(value, &lines) == nil {
			return strings.Join(lines, "\n")
		}
	}
	var b bytes.Buffer
	_ = json.Indent(&b, value, "", "  ") // the API sends JSON
	return b.String()
}

// value returns the text of a control as the API takes it, nil for the default.
func (o *setting) value(text string) (any, error) {
	switch {
	case o.Kind == "switch":
		return text == "true", nil
	case strings.TrimSpace(text) == "":
		return nil, nil //nolint:nilnil // null goes back to the default
	case o.Kind == "number":
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, &apiError{Status: http.StatusUnprocessableEntity, Message: o.Name + ": must be a whole number"}
		}
		return n, nil
	case o.Kind == "lines":
		return strings.Fields(text), nil
	case o.Kind == "json":
		if !json.Valid([]byte(text)) {
			return nil, &apiError{Status: http.StatusUnprocessableEntity, Message: o.Name + ": must be JSON"}
		}
		return json.RawMessage(text), nil
	}
	return text, nil
}

// changeSettings sends the settings that differ from those of the form as it was shown: "was." and
// "set." before the name of a setting are its value before and after.
func (s *Console) changeSettings(w http.ResponseWriter, r *http.Request, on *session) error {
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	in := map[string]any{}
	for field := range r.PostForm {
		name, ok := strings.CutPrefix(field, "was.")
		if !ok {
			continue
		}
		one := c.setting(name)
		was, set := unixLines(r.PostFormValue(field)), unixLines(r.PostFormValue("set."+name))
		if one.Kind == "switch" && set == "" {
			set = "false" // a box without its tick is not sent
		}
		if was == set {
			continue
		}
		if in[name], err = one.value(set); err != nil {
			return err
		}
	}
	if len(in) > 0 {
		if err := s.manage(r, on, http.MethodPatch, s.teamPath()+"/settings", nil, in, nil); err != nil {
			return err
		}
	}
	http.Redirect(w, r, s.Path+"/team?saved=1", http.StatusSeeOther)
	return nil
}

// unixLines returns a text of a form, whose lines end with CR LF, with lines that end with LF.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
