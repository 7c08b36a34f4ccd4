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
