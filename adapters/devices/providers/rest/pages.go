package rest

import (
	"encoding/json"
	"net/url"
	"strconv"
)

// Pages describes the paging of a collection. A token identifies a page. The token of the first page is empty.
type Pages interface {
	// setPage adds the parameter that requests the page with a token to a query.
	setPage(q url.Values, token string)
	// next returns the token of the next page; empty at the end. token and body are those of the current page, and n is
	// the number of its items.
	next(token string, body json.RawMessage, n int) string
}

// Cursor returns a paging by a cursor: each response has the cursor of the next page in a member, and the next request
// sends it in the query parameter param.
func Cursor(param, member string) Pages { return cursorPages{param, member} }

type cursorPages struct{ param, member string }

func (p cursorPages) setPage(q url.Values, token string) {
	if token != "" {
		q.Set(p.param, token)
	}
}

func (p cursorPages) next(_ string, body json.RawMessage, _ int) string {
	return scalarText(memberAt(body, p.member))
}

// Numbered returns a paging by page number, from 1, in the query parameter param. It ends at an empty page, because a
// page with few items need not be the last.
func Numbered(param string) Pages { return numberedPages{param} }

type numberedPages struct{ param string }

func (p numberedPages) setPage(q url.Values, token string) {
	q.Set(p.param, strconv.Itoa(number(token)+1))
}

func (numberedPages) next(token string, _ json.RawMessage, n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(number(token) + 1)
}

// Offset returns a paging by the number of items on earlier pages, in the query parameter param. It ends at a page with
// fewer than size items.
func Offset(param string, size int) Pages { return offsetPages{param, size} }

type offsetPages struct {
	param string
	size  int
}

func (p offsetPages) setPage(q url.Values, token string) { q.Set(p.param, strconv.Itoa(number(token))) }

func (p offsetPages) next(token string, _ json.RawMessage, n int) string {
	if n < p.size {
		return ""
	}
	return strconv.Itoa(number(token) + n)
}

// More returns a paging by an offset: each response has the offset of the next page in the member offset, and the next
// request sends it in the query parameter param. It ends when the member more is neither true nor 1.
func More(param, offset, more string) Pages { return morePages{param, offset, more} }

type morePages struct{ param, offset, more string }

func (p morePages) setPage(q url.Values, token string) {
	if token != "" {
		q.Set(p.param, token)
	}
}

func (p morePages) next(_ string, body json.RawMessage, _ int) string {
	if m := scalarText(memberAt(body, p.more)); m != "true" && m != "1" {
		return ""
	}
	return scalarText(memberAt(body, p.offset))
}

func number(token string) int {
	n, _ := strconv.Atoi(token)
	return max(n, 0)
}
