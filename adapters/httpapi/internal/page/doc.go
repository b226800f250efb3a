// Package page renders the link pages: HTML that works without scripts, one stylesheet, a small optional script, and
// the texts in two languages.
//
// The package contains no logic of linking: handlers build a [View] and choose a page by name. Texts come from a
// catalogue (text/*.json) by key, and html/template escapes all of them. The pages load nothing from other origins.
package page
