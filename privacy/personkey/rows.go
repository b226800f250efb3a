package personkey

import (
	"fmt"
	"strconv"
	"strings"
)

// The functions and constants of this file are row names, for stores that call [Keys.Seal] and [Keys.Open]
// themselves and pass a row name as bound. A row name identifies the row and column of an encrypted value,
// which therefore cannot be decrypted in another place. No two of them return the same text. A store made
// with [Encrypt] passes the key of the row instead.
//
//	users.birth_date               the fallback birth date of a user
//	record/RESOURCE/ID/doc         the JSON of a summary, profile or workout stream
//	record/RESOURCE/ID/raw         the payload that the source sent for it
//	webhook_event/ID               the body of an event
//	continuous_result/ID           the stored table of a continuous query
//	order/ID                       an order
//	order_name/ID                  the name by which an order is sorted
//	order_key/KEY                  the answer of an idempotency key
//	raw_result/ID                  a result under review
//	result_trial/ID                a test run of matching
//	user_info                      the demographics of a user
//	insurance/ID                   an insurance record
//	parsing_job/ID                 a job that parses a lab report
//	lab_record/LAB/NUMBER          the data of a laboratory's backend about an order
//	lab_delivery/LAB/KEY           a message of a laboratory
//	lab_message/LAB/PLACE          an entry of a laboratory's feed
//	file/KEY                       a file, or the key that encrypts it
//	samples/SERIES/START/header    the header (summary) of a chunk or a segment of a series
//	samples/SERIES/START/data      the samples of that chunk or segment
//	samples/SERIES/tail            a piece of the tail of a series

// RowBirthDate and RowUserInfo are the names, passed as bound to [Keys.Seal], of values that each user has once.
const (
	RowBirthDate = "users.birth_date"
	RowUserInfo  = "user_info"
)

// RowRecordDoc returns the row name of a record's JSON document. A row name is passed as bound to [Keys.Seal].
func RowRecordDoc(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/doc"
}

// RowRecordRaw returns the row name of the payload that a record's source sent.
func RowRecordRaw(resource string, id fmt.Stringer) string {
	return "record/" + resource + "/" + id.String() + "/raw"
}

// RowEvent returns the row name of the body of a webhook event.
func RowEvent(id fmt.Stringer) string { return "webhook_event/" + id.String() }

// RowResultTable returns the row name of the stored result table of a continuous query.
func RowResultTable(query fmt.Stringer) string { return "continuous_result/" + query.String() }

// RowOrder returns the row name of an order.
func RowOrder(id fmt.Stringer) string { return "order/" + id.String() }

// RowSortName returns the row name of the patient's name by which lists sort an order.
func RowSortName(order fmt.Stringer) string { return "order_name/" + order.String() }

// RowAnswer returns the row name of the answer that is stored for an idempotency key. key has the form in which the
// store keeps it, which is unique within the team.
func RowAnswer(key string) string { return "order_key/" + key }

// RowResult returns the row name of a laboratory result that waits for review.
func RowResult(id fmt.Stringer) string { return "raw_result/" + id.String() }

// RowMatchTestRun returns the row name of a test run that matches results to orders.
func RowMatchTestRun(id fmt.Stringer) string { return "result_trial/" + id.String() }

// RowInsurance returns the row name of an insurance record.
func RowInsurance(id fmt.Stringer) string { return "insurance/" + id.String() }

// RowParsingJob returns the row name of a job that parses a lab report.
func RowParsingJob(id fmt.Stringer) string { return "parsing_job/" + id.String() }

// RowLabRecord returns the row name of what the backend of a laboratory has stored about an order.
func RowLabRecord(lab, number string) string { return "lab_record/" + lab + "/" + number }

// RowLabDelivery returns the row name of a message that a laboratory sent. key identifies it within the laboratory.
func RowLabDelivery(lab, key string) string { return "lab_delivery/" + lab + "/" + key }

// RowLabMessage returns the row name of an entry in the feed (list of messages) of a laboratory. place is its
// number.
func RowLabMessage(lab string, place int64) string {
	return "lab_message/" + lab + "/" + strconv.FormatInt(place, 10)
}

// RowFile returns the row name of a stored file, or of the key that encrypts this file.
func RowFile(key string) string { return "file/" + key }

// RowSeries returns the text with which all row names of a series of samples begin: "samples/" and the fields that
// identify the series. These fields must not contain NUL.
func RowSeries(resource, provider, sourceType, part string) string {
	return "samples/" + strings.Join([]string{resource, provider, sourceType, part}, "\x00")
}

// RowChunkHeader returns the row name of the header of a chunk or segment (an encoded stretch of a series). start
// is the time of its first sample in microseconds since 1970; series is from [RowSeries].
func RowChunkHeader(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/header"
}

// RowChunkData returns the row name of the samples of a chunk or segment. Its arguments are those of
// [RowChunkHeader].
func RowChunkData(series string, start int64) string {
	return series + "/" + strconv.FormatInt(start, 10) + "/data"
}

// RowTail returns the row name that all entries in the tail of a series share; series is from [RowSeries]. A tail
// is the newest samples, in small pieces.
func RowTail(series string) string { return series + "/tail" }
