import { EditorView, keymap, lineNumbers, drawSelection, highlightActiveLine, highlightSpecialChars } from "@codemirror/view";
import { EditorState, Compartment } from "@codemirror/state";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { HighlightStyle, syntaxHighlighting, bracketMatching, indentOnInput, foldGutter, foldKeymap, indentUnit } from "@codemirror/language";
import { setDiagnostics, lintGutter, lintKeymap } from "@codemirror/lint";
import { tags } from "@lezer/highlight";

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "var(--editor-height, 15rem)", maxHeight: "60vh", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--canvas)", color: "var(--muted)", border: "none", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "1px solid var(--line-strong)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", padding: "4px 10px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--errored-bar)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--errored-bar) 1.5px", textUnderlineOffset: "3px", backgroundColor: "var(--errored-tint)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "1px solid var(--line)", color: "var(--muted)" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-key)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-atom)" },
  { tag: tags.punctuation, color: "var(--muted)" },
  { tag: tags.invalid, color: "var(--errored-fg)" },
]);

// Chromium itself would keep the colour of text that is typed over, in a style attribute that a strict CSP reports.
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.data == null || view.state.readOnly) return false;
    if (view.state.selection.ranges.every((range) => range.empty)) return false;
    event.preventDefault();
    view.dispatch(view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true }));
    return true;
  },
});

// A shadow root makes CodeMirror use adopted style sheets, which a strict CSP allows; in the document it would write <style>.
function mount(host, { doc = "", label = "JSON", readOnly = false, onChange = () => {}, onSubmit = () => {} } = {}) {
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc,
      extensions: [
        lineNumbers(), foldGutter(), lintGutter(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(),
        bracketMatching(), highlightActiveLine(), json(), indentUnit.of("  "), theme, syntaxHighlighting(colours),
        EditorView.lineWrapping, EditorState.readOnly.of(readOnly),
        typeOver,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off" }),
        keymap.of([{ key: "Mod-Enter", run: () => { onSubmit(); return true; } }, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap]),
        EditorView.updateListener.of((update) => { if (update.docChanged) onChange(update.state.doc.toString()); }),
      ],
    }),
  });
  return {
    view,
    value: () => view.state.doc.toString(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    mark(marks) {
      const size = view.state.doc.length;
      const at = (n) => Math.max(0, Math.min(size, n));
      const diagnostics = marks.map((m) => ({ from: at(m.from), to: at(Math.max(m.to, m.from)), severity: "error", message: m.message }));
      view.dispatch(setDiagnostics(view.state, diagnostics.sort((a, b) => a.from - b.from)));
    },
    reveal(from) {
      view.dispatch({ selection: { anchor: Math.max(0, Math.min(view.state.doc.length, from)) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
  };
}

window.StudioEditor = { mount };
