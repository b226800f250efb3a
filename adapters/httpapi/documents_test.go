package httpapi_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// titles is a printer of little text: what a document is, and its labels.
type titles struct{}

func (titles) Print(_ context.Context, d documents.Document) ([]byte, error) {
	text := "%PDF-1.7 " + string(d.Kind) + " " + d.Title
	for _, l := range d.Labels {
		text += "|" + strings.Join(l.Lines, ";")
	}
	return []byte(text), nil
}

// document reads a PDF file, which must be there.
func (c *fixture) document(path, kind string) string {
	c.t.Helper()
	r := c.get(path, 200)
	require.Equal(c.t, "application/pdf", r.Header.Get("Content-Type"))
	require.Equal(c.t, "private, no-store", r.Header.Get("Cache-Control"))
	require.True(c.t, strings.HasPrefix(string(r.Body), "%PDF-1.7 "+kind+" "))
	return string(r.Body)
}

// documents lists the documents of an order: kind and path of each.
func (c *fixture) documents(order string) (list []string) {
	c.t.Helper()
	var out struct {
		Documents []struct{ Kind, Path string }
	}
	require.NoError(c.t, json.Unmarshal(c.get(order+"/documents", 200).Body, &out))
	for _, d := range out.Documents {
		list = append(list, d.Kind+" "+d.Path)
	}
	return list
}

func TestOrderDocuments_areServedWhenTheOrderHasThem(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	path := "/v3/order/" + o.ID.String()
	journey := "/v3/order_transaction/" + o.OrderTransaction.ID.String() + "/result/pdf"
	labels := path + "/labels/pdf?collection_date=2026-03-04T08:30:00-07:00"
	for _, of := range []string{path + "/requisition/pdf", labels, path + "/abn_pdf"} {
		c.refused("GET", of, nil, 404, orders.DocumentNotFound)
	}
	for _, of := range []string{path + "/result/pdf", journey} {
		c.refused("GET", of, nil, 404, orders.ResultNotFound)
	}
	require.Equal(t, []string{"collection_instructions " + path + "/collection_instruction_pdf"}, c.documents(path))
	c.document(path+"/collection_instruction_pdf", "collection_instructions")
	c.document("/v3/lab_test/"+walkInTest+"/collection_instruction_pdf", "collection_instructions")
	c.refused("GET", "/v3/lab_test/5ab0c1d2-0000-4000-8000-000000000004/collection_instruction_pdf", nil, 404, orders.DocumentNotFound)
	c.refused("GET", "/v3/lab_test/"+o.ID.String()+"/collection_instruction_pdf", nil, 404, catalogue.LabTestNotFound)

	c.post(path+"/test", object{}, 200)
	require.Equal(t, []string{
		"requisition " + path + "/requisition/pdf", "collection_instructions " + path + "/collection_instruction_pdf",
		"labels " + path + "/labels/pdf", "results " + path + "/result/pdf",
	}, c.documents(path))
	c.document(path+"/requisition/pdf", "requisition")
	c.document(path+"/result/pdf", "results")
	c.document(journey, "results")
	three := c.document(labels, "labels")
	require.Equal(t, 3, strings.Count(three, "Collected 2026-03-04 08:30 -07:00"))
	require.Equal(t, 1, strings.Count(c.document(labels+"&number_of_labels=1", "labels"), "Account 1234567890"))
	require.Equal(t, 3, strings.Count(c.document(path+"/labels/pdf?collection_date=2026-03-04T08:30:00", "labels"), "08:30 UTC"))
	for query, loc := range map[string]string{
		"": "query.collection_date", "?collection_date=2026-03-04": "query.collection_date", "?collection_date=2026-02-30T08:30:00Z": "query.collection_date",
		"?collection_date=2026-03-04T08:30:00Z&number_of_labels=0": "query.number_of_labels", "?collection_date=2026-03-04T08:30:00Z&number_of_labels=101": "query.number_of_labels",
		"?collection_date=2026-03-04T08:30:00Z&labels=2": "query.labels", "?collection_date=2026-03-04T08:30:00Z&stock=ribbon": "query.stock",
	} {
		require.Equal(t, []string{loc}, c.Send(t, "GET", path+"/labels/pdf"+query, nil).Want(t, 422).Locs(t), query)
	}
	c.refused("GET", path+"/abn_pdf", nil, 404, orders.DocumentNotFound)

	// Another team does not learn of it.
	other := c.With("x-service-api-key", "other")
	for _, of := range []string{path + "/documents", path + "/requisition/pdf", labels, path + "/result/pdf", path + "/collection_instruction_pdf", path + "/abn_pdf"} {
		require.Equal(t, orders.OrderNotFound, other.Send(t, "GET", of, nil).Want(t, 404).ErrorType(t))
	}
	require.Equal(t, orders.TransactionNotFound, other.Send(t, "GET", journey, nil).Want(t, 404).ErrorType(t))
}

func TestRequisitionFormURL_opensTheFormWithoutAKey(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	path := "/v3/order/" + o.ID.String()
	require.Nil(t, o.RequisitionFormURL)
	c.post(path+"/test?final_status=received.walk_in_test.requisition_created", object{}, 200)
	var got orders.Order
	c.get(path, 200).JSON(t, &got)
	require.NotNil(t, got.RequisitionFormURL)
	at := strings.TrimPrefix(*got.RequisitionFormURL, "https://lab.example.com")
	nobody := c.With("x-service-api-key", "")
	form := nobody.Send(t, "GET", at, nil).Want(t, 200)
	require.Equal(t, c.document(path+"/requisition/pdf", "requisition"), string(form.Body))
	for _, bad := range []string{at + "x", at[:len(at)-1], httpapi.RequisitionFormPath + "/x", httpapi.RequisitionFormPath + "/" + o.ID.String()} {
		require.Equal(t, orders.DocumentNotFound, nobody.Send(t, "GET", bad, nil).Want(t, 404).ErrorType(t))
	}
	nobody.Send(t, "GET", httpapi.RequisitionFormPath+"/"+strings.Repeat("x", 2001), nil).Want(t, 422)
}
