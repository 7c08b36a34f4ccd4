/* Draw the document of the API. Swagger UI keeps a typed token in memory only. */
(() => {
  "use strict";
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const theme = root.dataset.theme;
    root.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && dark.matches));
  }
  paint();
  dark.addEventListener("change", paint);
  new MutationObserver(paint).observe(root, { attributeFilter: ["data-theme"] });

  const place = document.getElementById("api-docs");
  // The row of an operation is a button: a link in it would be a control within a control.
  const plainPaths = () => ({
    wrapComponents: {
      DeepLink: (Link, { React }) => (props) => {
        const isOperation = props.path.includes("/");
        return isOperation ? React.createElement("span", null, props.text) : React.createElement(Link, props);
      },
    },
  });
  // Swagger UI draws these without a name, and examples that scroll without a place for the keyboard.
  const NAMES = {
    "tr[data-param-name] :is(select, input, textarea)": (one) => one.closest("tr").dataset.paramName,
    "textarea.body-param__text": () => "Request body",
    ".responses-inner [role=region]": (one) => `Responses ${one.id.replace(/_responses$/, "")}`,
    ".opblock-section-request-body .content-type": () => "Type of the request body",
    "input.operation-filter-input": () => "Filter by tag",
  };
  function name() {
    for (const [selector, text] of Object.entries(NAMES)) {
      const nameless = place.querySelectorAll(`:is(${selector}):not([aria-label])`);
      for (const one of nameless) one.setAttribute("aria-label", text(one));
    }
    for (const one of place.querySelectorAll("pre:not([tabindex])")) one.tabIndex = 0;
  }
  new MutationObserver(name).observe(place, { childList: true, subtree: true });

  SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [plainPaths],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    persistAuthorization: false,
    validatorUrl: null,
    responseInterceptor(answer) {
      // Swagger UI would offer to download the answer instead of showing it.
      delete answer.headers["content-disposition"];
      return answer;
    },
  });
})();
