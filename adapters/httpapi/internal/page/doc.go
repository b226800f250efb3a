// Package page draws the link pages: HTML that works without a script, one stylesheet, a
// small script that only makes things nicer, and the words in two languages.
//
// It knows what a page shows and nothing of why: handlers build a [View] and name one of
// the pages. All text comes from a catalogue (text/*.json) by key; all of it is escaped by
// html/template. Nothing that it draws asks another origin for anything.
package page
