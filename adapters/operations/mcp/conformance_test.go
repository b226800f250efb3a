package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/operations/mcp"
)

var conformance = flag.String("conformance", "", "the program of the package @modelcontextprotocol/conformance; see make conformance")

// The scenarios of the package that call fixtures pass against a server that serves them through the adapter.
func TestServer_passesTheMCPConformanceScenarios(t *testing.T) {
	if *conformance == "" {
		t.Skip("needs the package of scenarios: make conformance")
	}
	w := newWorld(t)
	assistant, err := mcp.New(mcp.Services{Health: w.health, Aggregate: w.questions}, mcp.Options{
		Authenticate: func(*http.Request) (mcp.Caller, error) { return mcp.Caller{Team: clinic}, nil },
	})
	require.NoError(t, err)
	assistant.Serve(fixtures())
	server := httptest.NewServer(assistant.Handler())
	t.Cleanup(server.Close)
	for _, scenario := range strings.Fields(`server-initialize ping logging-set-level completion-complete json-schema-2020-12 dns-rebinding-protection
		tools-list tools-call-simple-text tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-error
		tools-call-with-logging tools-call-with-progress tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums
		resources-list resources-read-text resources-read-binary resources-templates-read resources-subscribe resources-unsubscribe
		prompts-list prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image
		server-sse-multiple-streams`) {
		t.Run(scenario, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), *conformance, "server", "--url", server.URL, "--scenario", scenario, "-o", t.TempDir()).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, `Passed: [1-9]\d*/\d+, 0 failed, 0 warnings`, string(out))
		})
	}
}

// A picture of one pixel, and a sound of one sample.
var (
	picture = must(base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="))
	sound   = must(base64.StdEncoding.DecodeString("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="))
)

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// fixtures is the server whose tools, resources and prompts the scenarios name.
func fixtures() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fixtures", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	fixtureTools(s)
	fixtureResources(s)
	fixturePrompts(s)
	return s
}

func fixtureTool(s *sdk.Server, name string, run func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: name}, func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
		content, err := run(ctx, r)
		return &sdk.CallToolResult{Content: content}, nil, err
	})
}

func text(format string, args ...any) sdk.Content {
	return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
}

func embedded(uri string) sdk.Content {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
}

func fixtureTools(s *sdk.Server) {
	image := &sdk.ImageContent{Data: picture, MIMEType: "image/png"}
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {image},
		"test_audio_content":          {&sdk.AudioContent{Data: sound, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded("test://embedded-resource")},
		"test_multiple_content_types": {text("This is text content"), image, embedded("test://embedded-in-multiple")},
	} {
		fixtureTool(s, name, func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) { return content, nil })
	}
	fixtureTool(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) ([]sdk.Content, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	fixtureTool(s, "test_tool_with_logging", func(ctx context.Context, r *sdk.CallToolRequest) ([]sdk.Content, error) {
		for _, line := range []string{"started", "processing", "completed"} {
			if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "Tool " + line}); err != nil { //nolint:staticcheck // a scenario asks for it
				return nil, err
			}
		}
		return []sdk.Content{text("Tool with logging executed successfully")}, nil
	})
	fixtureTool(s, "test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest) ([]sdk.Content, error) {
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return []sdk.Content{text("%v", r.Params.GetProgressToken())}, nil
	})
	fixtureTool(s, "test_sampling", func(ctx context.Context, r *sdk.CallToolRequest) ([]sdk.Content, error) {
		var in struct{ Prompt string }
		if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
			return nil, err
		}
		got, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{ //nolint:staticcheck // a scenario asks for it
			Messages: []*sdk.SamplingMessage{{Role: "user", Content: text("%s", in.Prompt)}}, MaxTokens: 100, //nolint:staticcheck // as above
		})
		if err != nil {
			return nil, err
		}
		return []sdk.Content{text("LLM response: %s", got.Content.(*sdk.TextContent).Text)}, nil
	})
	for name, form := range map[string]string{
		"test_elicitation": `{"type":"object","properties":{"username":{"type":"string"}},"required":["username"]}`,
		"test_elicitation_sep1034_defaults": `{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`,
		"test_elicitation_sep1330_enums": `{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["Option One","Option Two"]},
			"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]}}}}`,
	} {
		fixtureTool(s, name, func(ctx context.Context, r *sdk.CallToolRequest) ([]sdk.Content, error) {
			var in struct{ Message string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: in.Message, RequestedSchema: json.RawMessage(form)})
			if err != nil {
				return nil, err
			}
			return []sdk.Content{text("User response: action=%s, content=%v", got.Action, got.Content)}, nil
		})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "json_schema_2020_12_tool", Description: "Tool with JSON Schema 2020-12 features", InputSchema: json.RawMessage(`{
		"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)},
		func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{text("done")}}, nil, nil
		})
}

func fixtureResources(s *sdk.Server) {
	read := func(mime string, content func(uri string) sdk.ResourceContents) sdk.ResourceHandler {
		return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			c := content(r.Params.URI)
			c.URI, c.MIMEType = r.Params.URI, mime
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		}
	}
	written := func(string) sdk.ResourceContents {
		return sdk.ResourceContents{Text: "This is the content of the static text resource."}
	}
	s.AddResource(&sdk.Resource{Name: "static-text", MIMEType: "text/plain", URI: "test://static-text"}, read("text/plain", written))
	s.AddResource(&sdk.Resource{Name: "watched", MIMEType: "text/plain", URI: "test://watched-resource"}, read("text/plain", written))
	s.AddResource(&sdk.Resource{Name: "static-binary", MIMEType: "image/png", URI: "test://static-binary"},
		read("image/png", func(string) sdk.ResourceContents { return sdk.ResourceContents{Blob: picture} }))
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		read("application/json", func(uri string) sdk.ResourceContents {
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			return sdk.ResourceContents{Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}
		}))
}

func fixturePrompts(s *sdk.Server) {
	add := func(name string, arguments []string, content func(map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: name}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out := &sdk.GetPromptResult{Description: name}
			for _, c := range content(r.Params.Arguments) {
				out.Messages = append(out.Messages, &sdk.PromptMessage{Role: "user", Content: c})
			}
			return out, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(in map[string]string) []sdk.Content {
		return []sdk.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", in["arg1"], in["arg2"])}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(in map[string]string) []sdk.Content {
		return []sdk.Content{embedded(in["resourceUri"]), text("Please process the embedded resource above.")}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.ImageContent{Data: picture, MIMEType: "image/png"}, text("Please analyze the image above.")}
	})
}
