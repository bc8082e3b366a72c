// Package jinja renders the chat templates that models bring: Jinja2 as Hugging Face's tokenizers
// set it up (sandboxed, nothing changes a list or a dict, trim_blocks, lstrip_blocks, loop
// controls, {% generation %}, tojson without HTML, raise_exception, strftime_now).
//
// Two things set it apart from engines for web pages: every byte of a string knows whether a
// client brought it, through slices, splits, joins, JSON and numbers; and everything that a
// template does is counted against a budget. It never reads files or the network, has no
// includes and no imports, and reads the clock for strftime_now alone. Everybody in engine may
// import it; it imports the standard library.
//
// Invariants, cited by code and tests:
//
//	J1  what a client brought is marked as such in the rendering, wherever the template puts it
//	J2  memory and time of a rendering are bounded by its budget, whatever template and values
//	J3  text, errors of templates and order are those of Jinja2 3.1 for what is supported; what
//	    is not supported is an error when the template is parsed, or when it is used
//	J4  no source and no value makes it panic, overflow a stack, or compute with an integer that
//	    went over; should it panic, the rendering fails, and the process lives
package jinja
