package fhir

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// jsonTypes lists the media types and the values of _format that mean JSON.
var jsonTypes = []string{"json", "text/json", "application/json", "application/fhir+json"}

// versions lists the supported values of the media type parameter fhirVersion.
var versions = []string{"4.0", "4.0.1"}

// acceptsJSON reports whether a request accepts JSON of FHIR R4. The parameter _format decides; without it the
// header Accept does. A request with neither accepts it.
func acceptsJSON(r *http.Request, values url.Values) bool {
	if formats := values["_format"]; len(formats) > 0 {
		return !slices.ContainsFunc(formats, func(f string) bool { return !isJSON(plus(f), jsonTypes) })
	}
	text := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(text) == "" {
		return true
	}
	accepted := append([]string{"*/*", "application/*"}, jsonTypes...)
	return slices.ContainsFunc(strings.Split(text, ","), func(one string) bool { return isJSON(one, accepted) })
}

// isJSON reports whether a media type is one of a list, and its parameter fhirVersion, if any, is supported.
func isJSON(text string, list []string) bool {
	name, params, err := mime.ParseMediaType(text)
	if err != nil || !slices.Contains(list, name) {
		return false
	}
	if weight, err := strconv.ParseFloat(params["q"], 64); err == nil && weight == 0 {
		return false
	}
	version, said := params["fhirversion"]
	return !said || slices.Contains(versions, version)
}

func refuseFormat(w http.ResponseWriter) error {
	return refuse(w, httpapi.Refusal{Status: http.StatusNotAcceptable, Msg: "Accept and _format must be application/fhir+json, with fhirVersion 4.0 or none; other formats are not supported"})
}

func prefers(r *http.Request, preference string) bool {
	all := strings.FieldsFunc(strings.Join(r.Header.Values("Prefer"), ","), func(c rune) bool { return c == ',' || c == ';' })
	return slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(strings.ReplaceAll(one, " ", ""), preference) })
}

func unchanged(r *http.Request, version string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(r.Header.Values("If-None-Match"), ","), ","), func(tag string) bool {
		tag = strings.TrimSpace(tag)
		return tag == "*" || strings.TrimPrefix(tag, "W/") == `"`+version+`"`
	})
}
