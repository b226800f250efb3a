package openapi_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi"
)

func parts(files ...string) fstest.MapFS {
	fs := fstest.MapFS{"common.json": {Data: []byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"}}`)}}
	for i, text := range files {
		fs[string(rune('a'+i))+".json"] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func TestJoin_mergesPartsIntoOneDocument(t *testing.T) {
	got, err := openapi.Join(parts(
		`{"paths":{"/x":{"get":{"operationId":"a"}}},"components":{"schemas":{"S":{"z":1,"a":"<"}}}}`,
		`{"paths":{"/x":{"post":{"operationId":"b","x":{"$ref":"#/components/schemas/S"}}}},"tags":[{"name":"b"}]}`,
	))
	require.NoError(t, err)
	require.Equal(t, `{
  "openapi": "3.1.0",
  "info": {
    "title": "t",
    "version": "1"
  },
  "tags": [
    {
      "name": "b"
    }
  ],
  "paths": {
    "/x": {
      "get": {
        "operationId": "a"
      },
      "post": {
        "operationId": "b",
        "x": {
          "$ref": "#/components/schemas/S"
        }
      }
    }
  },
  "components": {
    "schemas": {
      "S": {
        "z": 1,
        "a": "<"
      }
    }
  }
}
`, string(got))
}

func TestJoin_refusesInvalidAndConflictingParts(t *testing.T) {
	for _, tt := range []struct {
		name, a, b, want string
	}{
		{"not JSON", `{`, `{}`, "unexpected EOF"},
		{"unknown part", `{"pathes":{}}`, `{}`, "pathes"},
		{"two documents", `{} {}`, `{}`, "no text after the JSON value"},
		{"info elsewhere", `{"info":{}}`, `{}`, "common.json"},
		{"defined twice", `{"components":{"schemas":{"S":{}}}}`, `{"components":{"schemas":{"S":{}}}}`, "schemas S is defined twice"},
		{"operation twice", `{"paths":{"/x":{"get":{"operationId":"a"}}}}`, `{"paths":{"/x":{"get":{"operationId":"b"}}}}`, "/x get is defined twice"},
		{"one id", `{"paths":{"/x":{"get":{"operationId":"a"}}}}`, `{"paths":{"/y":{"get":{"operationId":"a"}}}}`, "the same operationId"},
		{"no id", `{"paths":{"/x":{"get":{}}}}`, `{}`, "no operationId"},
		{"dangling", `{"components":{"schemas":{"S":{"items":[{"$ref":"#/components/schemas/T"}]}}}}`, `{}`, "has no target"},
		{"other file", `{"components":{"schemas":{"S":{"$ref":"b.json#/T"}}}}`, `{}`, "has no target"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openapi.Join(parts(tt.a, tt.b))
			require.ErrorContains(t, err, tt.want)
		})
	}
}
