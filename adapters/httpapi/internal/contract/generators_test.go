package contract_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
)

func asDocument(schemas, more string) []byte {
	return fmt.Appendf(nil, `{"openapi":"3.1.0","info":{"title":"t","version":"1"},
		"paths":{"/x":{"post":{"operationId":"x","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"}}}},"responses":{"204":{"description":"d"}}}}},
		"components":{"schemas":{%s}}%s}`, schemas, more)
}

func TestGeneratorFaults_reportsFormsThatGeneratorsRefuse(t *testing.T) {
	const (
		a = `"A":{"type":"object","properties":{"kind":{"type":"string","const":"a"},"n":{"type":"integer"}}}`
		b = `"B":{"type":"object","properties":{"kind":{"type":"string","const":"b"},"n":{"type":"integer"}}}`
		// refs are branches that have the same properties.
		refs = `[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}]`
		at   = "/components/schemas/S"
	)
	for _, tt := range []struct {
		name, schemas, more string
		want                []string
	}{
		{"nullable", `"S":{"type":["string","null"]}`, "", nil},
		{"types", `"S":{"type":["string","integer","null"]}`, "", []string{at + ": the type is one of [string integer]: use anyOf"}},
		{"types in anyOf", `"S":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`, "", nil},
		{"tuple", `"S":{"type":"array","prefixItems":[{"type":"string"}]}`, "", []string{at + ": has prefixItems"}},
		{"exclusive bound", `"S":{"type":"number","exclusiveMinimum":0}`, "", []string{at + ": has exclusiveMinimum"}},
		{"schema true", `"S":{"type":"object","properties":{"v":true}}`, "", []string{at + "/properties/v: a schema is true, not an object"}},
		{"items false", `"S":{"type":"array","items":false}`, "", []string{at + "/items: a schema is false, not an object"}},
		{"in a value", `"S":{"type":"object","additionalProperties":{"type":"array","items":{"type":["string","boolean"]}}}`, "", []string{at + "/additionalProperties/items: the type is one of [string boolean]: use anyOf"}},
		{"two texts", `"S":{"anyOf":[{"type":"string","format":"date"},{"type":"string","format":"date-time"}]}`, "", []string{at + ": a value does not tell its branch of anyOf"}},
		{"integer and number", `"S":{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "", []string{at + ": a value does not tell its branch of oneOf"}},
		{"anyOf of objects", `"S":{"anyOf":[{"type":"object","properties":{"x":{}}},{"type":"object","properties":{"y":{}}}]}`, "", []string{at + ": a value does not tell its branch of anyOf"}},
		{"oneOf of objects", `"S":{"oneOf":[{"type":"object","properties":{"x":{}}},{"type":"object","properties":{"y":{}}}]}`, "", nil},
		{"same properties", a + "," + b + `,"S":{"oneOf":` + refs + `}`, "", []string{at + ": a value does not tell its branch of oneOf"}},
		{"discriminator", a + "," + b + `,"S":{"oneOf":` + refs + `,"discriminator":{"propertyName":"kind","mapping":{"a":"#/components/schemas/A","b":"#/components/schemas/B"}}}`, "", nil},
		{"one name", `"S":{"type":"object","properties":{"userId":{"type":"string"},"user_id":{"type":"string"}}}`, "", []string{at + ": userId and user_id have one name in Go: give one an x-go-name"}},
		{"named", `"S":{"type":"object","properties":{"userId":{"type":"string"},"user_id":{"type":"string","x-go-name":"UserIDSnakeCase"}}}`, "", nil},
		{"itself", `"S":{"oneOf":[{"type":"object","required":["of"],"properties":{"of":{"$ref":"#/components/schemas/S"}}},{"type":"string"}]}`, "", []string{at + ": a value contains another one of itself"}},
		{"itself in a list", `"S":{"type":"object","required":["of"],"properties":{"of":{"type":"array","items":{"$ref":"#/components/schemas/S"}}}}`, "", nil},
		{"itself, optional", `"S":{"type":"object","properties":{"of":{"$ref":"#/components/schemas/S"}}}`, "", nil},
		{"webhook", `"S":{"type":"string"},"T":{"type":"string"}`,
			`,"webhooks":{"w":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T"}}}}}}}`,
			[]string{"/components/schemas/T: webhooks refer to it and no operation does"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := contract.GeneratorFaults(asDocument(tt.schemas, tt.more))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestGeneratorFaults_reportsBodiesAndNamesThatGeneratorsRefuse(t *testing.T) {
	got, err := contract.GeneratorFaults([]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},
		"paths":{"/x":{"post":{"operationId":"x",
			"parameters":[{"$ref":"#/components/parameters/P"}],
			"requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"f":{"type":"string"}}},"encoding":{"f":{"contentType":"image/png, image/jpeg"}}}}},
			"responses":{"200":{"description":"d","content":{
				"text/csv":{"schema":{"type":"string"}},
				"application/pdf":{"schema":{"type":"string","format":"binary"}},
				"application/json":{"schema":{}}}}}}}},
		"components":{"parameters":{"P":{"name":"p","in":"query","schema":{"type":["string","boolean"]}}},
			"schemas":{"Key":{"type":"string"}},"securitySchemes":{"Key":{"type":"http","scheme":"bearer"}}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{
		"/components/parameters/P/schema: the type is one of [string boolean]: use anyOf",
		"/components/securitySchemes/Key: a component in schemas has the same name",
		"/paths/~1x/post/requestBody/content/multipart~1form-data: the content type of part f is not application/json",
		"/paths/~1x/post/responses/200/content/text~1csv: the schema is not a string of format binary",
	}, got)
}
