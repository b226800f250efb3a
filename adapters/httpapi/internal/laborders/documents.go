package laborders

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// RequisitionFormPath is the path of signed URLs of requisitions, without the token at the end.
const RequisitionFormPath = "/v3/order/requisition_form"

func (a API) documentOperations() []server.Operation {
	order := func(kind documents.DocumentKind) string { return "GET " + orderDocumentPath("{order_id}", kind) }
	return []server.Operation{
		{ID: "list_order_documents", Pattern: "GET /v3/order/{order_id}/documents", Bound: a.ofOrder(), Team: server.ReadOne(orderID, a.orderDocuments)},
		{ID: "read_requisition_pdf", Pattern: order(documents.RequisitionForm), Bound: a.ofOrder(), Team: document(orderID, a.Documents.Requisition)},
		{ID: "read_labels_pdf", Pattern: order(documents.SpecimenLabels), Bound: a.ofOrder(), Team: a.readLabels},
		{ID: "read_order_result_pdf", Pattern: order(documents.ResultsReport), Bound: a.ofOrder(), Team: document(orderID, a.Documents.Report)},
		{ID: "read_order_collection_instruction_pdf", Pattern: order(documents.CollectionInstructions), Bound: a.ofOrder(), Team: document(orderID, a.Documents.OrderInstructions)},
		{ID: "read_abn_pdf", Pattern: order(documents.BeneficiaryNotice), Bound: a.ofOrder(), Team: document(orderID, a.Documents.CoverageNotice)},
		{ID: "read_order_transaction_result_pdf", Pattern: "GET /v3/order_transaction/{transaction_id}/result/pdf", Bound: a.ofTransaction(), Team: document(transactionID, a.Documents.TransactionReport)},
		{ID: "read_lab_test_collection_instruction_pdf", Pattern: "GET /v3/lab_test/{lab_test_id}/collection_instruction_pdf", Bound: server.Public, Team: document(labTestID, a.Documents.LabTestInstructions)},
		// The signed token in the path authorises the request.
		{ID: "read_requisition_form", Pattern: "GET " + RequisitionFormPath + "/{token}", Handle: a.readRequisitionForm},
	}
}

// documentPaths maps the kinds of an order's documents to their paths, relative to that of the order.
var documentPaths = map[documents.DocumentKind]string{
	documents.RequisitionForm: "requisition/pdf", documents.SpecimenLabels: "labels/pdf", documents.ResultsReport: "result/pdf",
	documents.CollectionInstructions: "collection_instruction_pdf", documents.BeneficiaryNotice: "abn_pdf",
}

func orderDocumentPath(id string, kind documents.DocumentKind) string {
	return "/v3/order/" + id + "/" + documentPaths[kind]
}

// orderDocuments lists the documents that exist for an order.
type orderDocuments struct {
	Documents []orderDocumentOut `json:"documents"`
}

// orderDocumentOut is one document that exists for an order.
type orderDocumentOut struct {
	Kind documents.DocumentKind `json:"kind"`
	// Path is the path of the API at which the document can be read.
	Path string `json:"path"`
}

func (a API) orderDocuments(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orderDocuments, error) {
	kinds, err := a.Documents.List(ctx, team, id)
	out := orderDocuments{Documents: []orderDocumentOut{}}
	for _, kind := range kinds {
		out.Documents = append(out.Documents, orderDocumentOut{kind, orderDocumentPath(id.String(), kind)})
	}
	return out, err
}

// pdf answers with a PDF file that caches must not store. If err is not nil, it returns err.
func pdf(w http.ResponseWriter, file []byte, err error) error {
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "private, no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	return wire.Bytes(w, http.StatusOK, "application/pdf", file)
}

// document returns a handler that answers with a PDF file. of reads the id from the path, and read returns the file.
func document[ID any](of func(*wire.In) ID, read func(context.Context, healthlab.TeamID, ID) ([]byte, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		id := of(in)
		if err := in.Err(); err != nil {
			return err
		}
		file, err := read(r.Context(), team, id)
		return pdf(w, file, err)
	}
}

func (a API) readLabels(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	at := in.Local("collection_date")
	count := in.Int("number_of_labels", 3, 1, documents.MaxLabels)
	stock := in.OneOf("stock", "", string(documents.LabelRoll), string(documents.LabelSheet))
	if err := in.Err(); err != nil {
		return err
	}
	file, err := a.Documents.Labels(r.Context(), team, id, documents.LabelsRequest{CollectedAt: at, Count: count, Stock: documents.LabelStock(stock)})
	return pdf(w, file, err)
}

func (a API) readRequisitionForm(w http.ResponseWriter, r *http.Request) error {
	const most = 2000 // longer than any token
	in := wire.From(r)
	token := in.PathText("token", most)
	if err := in.Err(); err != nil {
		return err
	}
	file, err := a.Documents.RequisitionAt(r.Context(), token)
	return pdf(w, file, err)
}
