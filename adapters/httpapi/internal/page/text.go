package page

import (
	"embed"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed text/*.json
var textFiles embed.FS

// DefaultLanguage is the language that has every text.
const DefaultLanguage = "en"

// catalogue holds the texts by language and key.
type catalogue map[string]map[string]string

// readTexts reads the built-in texts and replaces them by the texts in own. A language that exists only in own uses
// English for missing texts.
func readTexts(own map[string]map[string]string) (catalogue, error) {
	all := catalogue{}
	files, err := textFiles.ReadDir("text")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		b, err := textFiles.ReadFile("text/" + f.Name())
		if err != nil {
			return nil, err
		}
		var words map[string]string
		if err := json.Unmarshal(b, &words); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(f.Name(), ".json")] = words
	}
	for lang, words := range own {
		if all[lang] == nil {
			all[lang] = maps.Clone(all[DefaultLanguage])
		}
		maps.Copy(all[lang], words)
	}
	return all, nil
}

func (c catalogue) languages() []string { return slices.Sorted(maps.Keys(c)) }

// translate returns a text with its placeholders replaced. pairs alternate names and values of placeholders.
func (c catalogue) translate(lang, key string, pairs ...any) string {
	text, ok := c[lang][key]
	if !ok {
		if text, ok = c[DefaultLanguage][key]; !ok {
			return key
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		var value string
		switch v := pairs[i+1].(type) {
		case string:
			value = v
		case int:
			value = strconv.Itoa(v)
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// Has reports whether a text with this key exists.
func (s *Site) Has(key string) bool { _, ok := s.texts[DefaultLanguage][key]; return ok }

// Say returns the text with a key in a language. It must be a text without placeholders.
func (s *Site) Say(lang, key string) string { return s.texts.translate(lang, key) }

// Language returns the language of a page: asked if it exists, else the best match of the Accept-Language header, else
// the default.
func (s *Site) Language(asked, accept string) string {
	if s.texts[asked] != nil {
		return asked
	}
	best, weight := s.language, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || !(f >= 0 && f <= 1) {
				continue
			}
			q = f
		}
		tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if s.texts[tag] != nil && q > weight {
			best, weight = tag, q
		}
	}
	return best
}
