package contract_test

// demo is a small contract to check the checks with.
const demo = `{
 "openapi": "3.1.0", "info": {"title": "t", "version": "1"},
 "paths": {
  "/things/{id}": {
   "get": {"operationId": "get_thing",
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}, {"name": "full", "in": "query", "schema": {"type": "boolean"}}],
    "responses": {
     "200": {"description": "d", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
     "204": {"description": "d"},
     "404": {"$ref": "#/components/responses/NotFound"}}},
   "post": {"operationId": "change_thing",
    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}},
    "responses": {"204": {"description": "d"}, "404": {"$ref": "#/components/responses/NotFound"}}}
  },
  "/things/latest": {"get": {"operationId": "latest_thing", "responses": {"204": {"description": "d"}}}}
 },
 "components": {
  "responses": {"NotFound": {"description": "d", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}},
  "schemas": {
   "Error": {"type": "object", "required": ["detail"], "properties": {"detail": {"type": "object"}}},
   "Change": {"type": "object", "additionalProperties": false, "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": ["integer", "null"]}}},
   "Part": {"type": "object", "additionalProperties": false, "required": ["n"], "properties": {"n": {"type": "number"}}},
   "Thing": {"type": "object", "additionalProperties": false, "required": ["id", "kind", "born", "parts", "best"],
    "properties": {
     "id": {"type": "string", "format": "uuid"}, "kind": {"type": "string", "x-extensible-enum": ["a", "b"]},
     "born": {"type": ["string", "null"], "format": "date"},
     "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
     "best": {"anyOf": [{"$ref": "#/components/schemas/Part"}, {"type": "null"}]},
     "note": {"type": "string"}}}
  }
 }
}`
